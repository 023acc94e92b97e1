"""The release of roundsman that is installed."""

import json
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGE = "roundsman"
NO_WHEEL = (
    "roundsman was installed from a folder, from which `make test` cannot install it: build its "
    "wheel (make dist), copy it into the folder vendor of the application, and begin "
    "requirements.txt with the line --find-links vendor."
)


def release() -> str:
    """Return the version of the installed package."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "0.0.0"


def installed_wheel() -> Path | None:
    """Return the local wheel that the package was installed from; None if there is none."""
    path = _origin()
    return path if path is not None and path.suffix == ".whl" and path.is_file() else None


def is_on_no_index() -> bool:
    """Whether the package was installed from a folder, or from a wheel that is gone.

    Then another environment cannot install it.
    """
    return _origin() is not None and installed_wheel() is None


def _origin() -> Path | None:
    """The local file or folder that the package was installed from; None if it was an index.

    pip notes the origin of a package (PEP 610).
    """
    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    url = urlsplit(json.loads(text)["url"]) if text else urlsplit("")
    return Path(unquote(url.path)) if url.scheme == "file" else None
