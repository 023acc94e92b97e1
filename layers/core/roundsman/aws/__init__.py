"""The adapters: all code that calls AWS. The core never imports from here."""

from roundsman.aws.cold_start import begin
from roundsman.aws.snap_start import seed_after_restore

begin()  # here, because all imports of AWS libraries come after this one
seed_after_restore()  # here, because every function imports this package before its first event
