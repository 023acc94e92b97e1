"""The adapters: everything that touches AWS. The core never imports from here."""
