"""The list of a release's parts: what the locks pin, in a form that readers of CycloneDX take."""

import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

from tools.release_parts import (
    LAYER,
    LOCKS,
    Json,
    Pinned,
    asked_by_users,
    needed,
    parts_list,
    read_lock,
)

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
LOCKED = {file: (ROOT / file).read_text(encoding="utf-8") for file in LOCKS}
ONE, TWO, OTHER = "1" * 64, "2" * 64, "a" * 64
FILES = {"roundsman-1.tar.gz": ONE, "roundsman-1-py3-none-any.whl": TWO}

HASHES = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["alg", "content"],
        "properties": {
            "alg": {"enum": ["SHA-256"]},
            "content": {"type": "string", "pattern": "^[a-f0-9]{64}$"},
        },
    },
}
COMPONENT = {
    "type": "object",
    "required": ["type", "name", "bom-ref", "version", "purl"],
    "properties": {
        "type": {"enum": ["library"]},
        "scope": {"enum": ["required", "optional"]},
        "purl": {"type": "string", "pattern": r"^pkg:pypi/[a-z0-9-]+@[^@]+$"},
        "externalReferences": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["url", "type"],
                "properties": {"type": {"enum": ["distribution"]}, "hashes": HASHES},
            },
        },
    },
}
SPECIFICATION = {
    "type": "object",
    "required": ["bomFormat", "specVersion", "serialNumber", "version", "metadata", "components"],
    "properties": {
        "bomFormat": {"const": "CycloneDX"},
        "specVersion": {"const": "1.6"},
        "serialNumber": {
            "type": "string",
            "pattern": "^urn:uuid:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$",
        },
        "version": {"type": "integer", "minimum": 1},
        "metadata": {
            "type": "object",
            "required": ["timestamp", "component"],
            "properties": {
                "component": COMPONENT,
                "timestamp": {"type": "string", "pattern": "^....-..-..T..:..:..Z$"},
            },
        },
        "components": {"type": "array", "uniqueItems": True, "items": COMPONENT},
        "dependencies": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["ref"],
                "properties": {"dependsOn": {"type": "array", "uniqueItems": True}},
            },
        },
    },
}
"""What CycloneDX 1.6 asks of the objects that the list has, and what the list adds to that."""

LOCK = f"""\
# made by make lock
asked[extra]==1.0 ; python_version > '3' \\
    --hash=sha256:{TWO} \\
    --hash=sha256:{ONE}
    # via
    #   -r requirements/some.in
    #   roundsman (pyproject.toml)
inner==2.0 \\
    --hash=sha256:{ONE}
    # via asked
innermost==3.0 \\
    --hash=sha256:{ONE}
    # via
    #   -c requirements/dev.txt
    #   inner
other==4.0 \\
    --hash=sha256:{OTHER}
    # via roundsman (pyproject.toml)
"""


def made(**locks: str) -> dict[str, Json]:
    return parts_list(PYPROJECT, {**LOCKED, **locks}, FILES, 1_800_000_000)


def components(parts: dict[str, Json]) -> dict[str, dict[str, Json]]:
    found = parts["components"]
    assert isinstance(found, list)
    return {str(one["name"]): one for one in found if isinstance(one, dict)}


def hashes(component: dict[str, Json]) -> set[str]:
    references = component["externalReferences"]
    assert isinstance(references, list)
    lists = [one["hashes"] for one in references if isinstance(one, dict)]
    every = [each for one in lists if isinstance(one, list) for each in one]
    return {str(each["content"]) for each in every if isinstance(each, dict)}


def depends_on(parts: dict[str, Json], name: str) -> list[str]:
    found = parts["dependencies"]
    assert isinstance(found, list)
    [needs] = [
        one["dependsOn"]
        for one in found
        if isinstance(one, dict) and str(one["ref"]).startswith(f"pkg:pypi/{name}@")
    ]
    assert isinstance(needs, list)
    return [str(one).removeprefix("pkg:pypi/").partition("@")[0] for one in needs]


def test_a_lock_is_read_with_versions_hashes_and_who_needs_what() -> None:
    asked, inner, innermost, other = read_lock(LOCK, "a.txt")
    assert asked == Pinned("asked", "1.0", (ONE, TWO), frozenset(), asked=True)
    assert inner == Pinned("inner", "2.0", (ONE,), frozenset({"asked"}), asked=False)
    assert innermost.needed_by == {"inner"}
    assert other.asked


@pytest.mark.parametrize(
    "line", ["asked>=1.0 \\\n    --hash=sha256:" + ONE, "asked==1.0", "https://host/asked.whl"]
)
def test_a_requirement_without_version_or_hash_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match=r"a\.txt: \S+ needs an exact version and a hash"):
        read_lock(line, "a.txt")


def test_what_is_needed_are_those_asked_for_and_all_that_these_need() -> None:
    locked = read_lock(LOCK, "a.txt")
    assert [one.name for one in needed(locked, ["asked"])] == ["asked", "inner", "innermost"]
    assert [one.name for one in needed(locked, ["other"])] == ["other"]
    assert [one.name for one in needed(locked)] == ["asked", "inner", "innermost", "other"]


def test_users_ask_for_what_the_package_and_its_extras_ask_for() -> None:
    project = tomllib.loads(
        'name = "me"\ndependencies = ["Base[x]>=1"]\n[optional-dependencies]\n'
        'ui = ["page==1", "me[cli]"]\n'
    )
    assert asked_by_users(project) == {"base", "page"}


def test_the_list_has_what_the_specification_asks_for() -> None:
    jsonschema.validate(made(), SPECIFICATION)


def test_every_reference_is_to_one_part_of_the_list() -> None:
    parts = made()
    metadata = parts["metadata"]
    assert isinstance(metadata, dict)
    listed = [metadata["component"], *components(parts).values()]
    assert isinstance(parts["components"], list)
    every = [*parts["components"], metadata["component"]]
    refs = [one["bom-ref"] for one in every if isinstance(one, dict)]
    assert len(set(map(str, refs))) == len(refs) >= len(listed)
    dependencies = parts["dependencies"]
    assert isinstance(dependencies, list)
    assert {str(one["ref"]) for one in dependencies if isinstance(one, dict)} == set(map(str, refs))
    for one in dependencies:
        assert isinstance(one, dict)
        assert isinstance(one["dependsOn"], list)
        assert {*map(str, one["dependsOn"])} <= set(map(str, refs))


def test_the_parts_of_the_layer_are_required_with_all_hashes_of_the_lock() -> None:
    found = components(made())
    names = re.findall(r"^([a-z0-9-]+)==", LOCKED[LAYER], re.MULTILINE)
    required = [name for name, one in found.items() if one["scope"] == "required"]
    assert sorted(names) == sorted(required)
    for pinned in read_lock(LOCKED[LAYER], LAYER):
        assert hashes(found[pinned.name]) == {*pinned.hashes}


def test_an_extra_and_the_local_aws_are_optional_and_tools_of_developers_are_no_parts() -> None:
    found = components(made())
    assert {found[name]["scope"] for name in ("typer", "starlette", "ministack")} == {"optional"}
    assert not {"ruff", "mypy", "mkdocs-material", "hypothesis"} & set(found)


def test_what_needs_what_is_that_of_the_locks() -> None:
    parts = made(**{LAYER: LOCK})
    assert depends_on(parts, "asked") == ["inner"]
    assert depends_on(parts, "inner") == ["innermost"]
    assert "innermost" not in depends_on(parts, "roundsman")
    assert "asked" in depends_on(parts, "roundsman")
    assert "cfn-lint" not in depends_on(parts, "roundsman"), "developers ask for it, and moto"


def test_another_file_of_the_release_is_another_list_and_the_same_are_the_same() -> None:
    other = parts_list(PYPROJECT, LOCKED, {**FILES, "roundsman-1.tar.gz": OTHER}, 1_800_000_000)
    assert made() == made()
    assert other["serialNumber"] != made()["serialNumber"]
