"""Reading a translated template: its resources by type, its agents, and what a value names.

The functions return an empty value for what is missing or has another form, so that a rule can
report it.
"""

from dataclasses import dataclass

from roundsman_dev.template import Document, Json, part

ENGINE_FUNCTIONS = ("SubmissionFunction", "SchedulerFunction", "SupervisorFunction")
STACK = "${AWS::StackName}"


@dataclass(frozen=True)
class TemplateAgent:
    """An agent of the template."""

    prefix: str
    """The first part of the logical id of each of its resources (`GiftWrap`)."""
    name: str
    """Its name in workflows and messages (`gift_wrap`)."""

    @property
    def function(self) -> str:
        """The logical id of its function."""
        return f"{self.prefix}Function"

    @property
    def role(self) -> str:
        """The logical id of its role."""
        return f"{self.prefix}Role"

    @property
    def request_queues(self) -> tuple[str, str]:
        """The queues for requests of normal and of urgent priority."""
        return f"{self.prefix}RequestQueue", f"{self.prefix}UrgentRequestQueue"

    @property
    def reply_queue(self) -> str:
        """The logical id of its reply queue."""
        return f"{self.prefix}ReplyQueue"


def at(value: Json, *path: str) -> Json:
    """The value under these keys; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def items(value: Json) -> list[Json]:
    """`value` as a list: a policy may contain a single item as itself. None is an empty list."""
    return [] if value is None else value if isinstance(value, list) else [value]


def mappings_in(value: Json) -> list[Document]:
    """The mappings in `items(value)`."""
    return [item for item in items(value) if isinstance(item, dict)]


def reference(value: Json) -> str:
    """The logical id that a Ref or a Fn::GetAtt names; empty for any other value."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), _]}:
            return name
        case _:
            return ""


def of_type(template: Document, kind: str) -> dict[str, Document]:
    """The properties of every resource of one type, by logical id."""
    return {
        name: part(resource, "Properties")
        for name, resource in part(template, "Resources").items()
        if isinstance(resource, dict) and resource.get("Type") == kind
    }


def one_of_type(template: Document, kind: str, name: str) -> Document | None:
    """The properties of one resource; None if there is none of that name and type."""
    resource = part(template, "Resources").get(name)
    if isinstance(resource, dict) and resource.get("Type") == kind:
        return part(resource, "Properties")
    return None


def parameters(template: Document) -> dict[str, Document]:
    """The parameters of the template, by name."""
    found = part(template, "Parameters").items()
    return {name: parameter for name, parameter in found if isinstance(parameter, dict)}


def functions(template: Document) -> dict[str, Document]:
    """The properties of every function, by logical id."""
    return of_type(template, "AWS::Lambda::Function")


def queues(template: Document) -> dict[str, Document]:
    """The properties of every queue, by logical id."""
    return of_type(template, "AWS::SQS::Queue")


def agents(template: Document) -> list[TemplateAgent]:
    """The agents: each function that is not a function of the engine is the function of one."""
    return [
        TemplateAgent(
            name.removesuffix("Function"),
            str(variables(template, name).get("POWERTOOLS_SERVICE_NAME", "")),
        )
        for name in functions(template)
        if name not in ENGINE_FUNCTIONS
    ]


def invoked(template: Document, value: Json) -> str:
    """The logical id of the function that a value names, itself or by its alias; empty if none."""
    named = reference(value)
    alias = one_of_type(template, "AWS::Lambda::Alias", named)
    return named if alias is None else reference(at(alias, "FunctionName"))


def event_sources(template: Document) -> list[tuple[str, str, Document]]:
    """The queue and the function of each event source mapping, and the mapping's properties.

    Only of those that the stack has.
    """
    return [
        (
            reference(at(mapping, "EventSourceArn")),
            invoked(template, at(mapping, "FunctionName")),
            mapping,
        )
        for name, mapping in of_type(template, "AWS::Lambda::EventSourceMapping").items()
        if is_made(template, name)
    ]


def variables(template: Document, function: str) -> Document:
    """The environment variables of a function, as written."""
    properties = one_of_type(template, "AWS::Lambda::Function", function)
    found = at(properties, "Environment", "Variables")
    return found if isinstance(found, dict) else {}


def default_of(template: Document, value: Json) -> Json:
    """The value itself, or the default of the parameter that it refers to."""
    match value:
        case {"Ref": str(name)} if name in parameters(template):
            return parameters(template)[name].get("Default")
        case _:
            return value


def chosen(template: Document, value: Json) -> Json:
    """The branch of a Fn::If that its condition chooses; any other value itself.

    The condition compares two values, or joins such comparisons by Fn::Not, Fn::And and Fn::Or. A
    parameter has its default.
    """
    match value:
        case {"Fn::If": [str(name), yes, no]}:
            return yes if _holds(template, at(template, "Conditions", name)) else no
        case _:
            return value


def _holds(template: Document, condition: Json) -> bool:
    match condition:
        case {"Fn::Not": [inner]}:
            return not _holds(template, inner)
        case {"Fn::And": [*inner]}:
            return all(_holds(template, each) for each in inner)
        case {"Fn::Or": [*inner]}:
            return any(_holds(template, each) for each in inner)
        case {"Fn::Equals": [one, other]}:
            return str(default_of(template, one)) == str(default_of(template, other))
        case _:
            return False


def is_made(template: Document, name: str) -> bool:
    """Whether the stack has this resource of the template: no condition leaves it out."""
    match at(template, "Resources", name, "Condition"):
        case str(condition):
            return _holds(template, at(template, "Conditions", condition))
        case _:
            return True


def bounds(template: Document, value: Json) -> tuple[int, int, int] | None:
    """The least, the default and the greatest value of a number or of the parameter it refers to.

    None if they are not whole numbers.
    """
    match value:
        case int(number):
            return number, number, number
        case {"Ref": str(name)}:
            match parameters(template).get(name):
                case {"MinValue": int(low), "Default": int(middle), "MaxValue": int(high)}:
                    return low, middle, high
                case _:
                    return None
        case _:
            return None
