"""The adapters: everything that touches AWS. The core never imports from here."""

from roundsman.aws.cold_start import begin

begin()  # here, since whatever a function imports of AWS's libraries it imports after this
