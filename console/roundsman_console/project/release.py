"""The release of roundsman that is installed."""

import json
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGE = "roundsman"


def release() -> str:
    """Return the version of the installed package."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "0.0.0"


def installed_wheel() -> Path | None:
    """Return the local wheel that the package was installed from; None if it came from an index.

    pip notes the origin of a package (PEP 610).
    """
    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    url = urlsplit(json.loads(text)["url"]) if text else urlsplit("")
    path = Path(unquote(url.path))
    return path if url.scheme == "file" and path.suffix == ".whl" and path.is_file() else None
