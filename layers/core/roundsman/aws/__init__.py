"""The adapters: all code that calls AWS. The core never imports from here."""

from roundsman.aws.cold_start import begin

begin()  # here, because all imports of AWS libraries come after this one
