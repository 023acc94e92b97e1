"""The templates of this project in plain CloudFormation, as `roundsman changes` compares them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from roundsman_dev.changes.whole import StackTemplate, whole_resources
from roundsman_dev.local.parameters import read_template
from roundsman_dev.nested_stacks import APPLICATION, Document, copied
from roundsman_dev.template import mapping_of, part, transformed

ROOT = Path(__file__).parents[4]
VALUES: Mapping[str, str] = {
    **{f"{name}Url": "https://s.test" for name in ("Inventory", "Payment", "Shipping", "Mail")},
    "AlertEmail": "",
    "PythonRuntime": "python3.13",
    "Architecture": "arm64",
    "LogLevel": "INFO",
    "DeletionProtection": "true",
    "SupervisorIntervalSeconds": "60",
}
_read: dict[Path, Document] = {}


def template(path: Path) -> Document:
    """A template as it is written, which the caller may change."""
    if path not in _read:
        _read[path] = mapping_of(read_template(path))
    return mapping_of(copied(_read[path]))


def packaged(
    edits: Mapping[str, Callable[[Document], object]] | None = None,
    *,
    layers: str = "1",
    code: str = "1",
) -> StackTemplate:
    """The project's templates, packaged; an edit changes that of its block, "" that of the root.

    Another text for `layers` or `code` stands for other contents of all layers or functions.
    """
    edit: dict[str, Callable[[Document], object]] = {"": bool, **(edits or {})}
    root, nested = template(ROOT / "template.yaml"), {}
    edit[""](root)
    for name, resource in part(root, "Resources").items():
        properties = part(mapping_of(resource), "Properties")
        if mapping_of(resource)["Type"] != APPLICATION:
            properties["ContentUri"] = f"s3://code/{name}-{layers}"
            continue
        inner = template(ROOT / str(properties["Location"]))
        for body in part(inner, "Resources").values():
            if mapping_of(body)["Type"] == "AWS::Serverless::Function":
                part(mapping_of(body), "Properties")["CodeUri"] = f"s3://code/{name}-{code}"
        edit.get(name, bool)(inner)
        nested[name] = StackTemplate(transformed(inner, {}))
        properties["Location"] = "https://s3.test/code/x.template"
    return StackTemplate(transformed(root, VALUES), nested)


def resources(stack: StackTemplate, **values: str) -> dict[str, Document]:
    """All resources of a stack, with these values of its parameters."""
    return whole_resources(stack, {**VALUES, **values})
