"""Whether answers in JSON have the shapes that botocore has models of. Its parsers pass over a member that they do not know;
clients that are compiled from the same models then have nothing where the member should be."""

import json

import botocore.handlers


def strange(shape, value, path):
    """What is not as the model says, with where it stands."""
    kind = shape.type_name
    expected = {"structure": dict, "map": dict, "list": list, "string": str, "blob": str, "boolean": bool, "integer": int,
                "long": int, "timestamp": (int, float), "float": (int, float), "double": (int, float)}[kind]
    if not isinstance(value, expected):
        yield f"{path} is no {kind}: {value!r:.80}"
    elif kind == "structure":
        known = {member.serialization.get("name", name): member for name, member in shape.members.items()}
        for name, part in value.items():
            if name in known:
                yield from strange(known[name], part, f"{path}.{name}")
            else:
                yield f"{path}.{name} is unknown"
        for name in shape.required_members:
            member = shape.members[name]
            # Lists of which nothing is to be said are left out, whatever the model says.
            if member.type_name != "list" and member.serialization.get("name", name) not in value:
                yield f"{path}.{name} is missing"
    elif kind == "list":
        for part in value:
            yield from strange(shape.member, part, f"{path}[]")
    elif kind == "map":
        for part in value.values():
            yield from strange(shape.value, part, f"{path}{{}}")
    elif kind == "string" and shape.enum and value not in shape.enum:
        yield f"{path} has a value of its own: {value}"


def check(operation_model, response_dict, **_):
    body, service = response_dict["body"], operation_model.service_model
    if service.metadata["protocol"] != "json" or not isinstance(body, bytes) or not body:
        return
    answer, shape = json.loads(body), operation_model.output_shape
    if response_dict["status_code"] >= 300:
        # Faults of what stands before the services have no models.
        shape = service.shape_for_error_code(answer.pop("__type", "").rpartition("#")[2])
    found = list(strange(shape, answer, shape.name)) if shape else []
    assert not found, f"{operation_model.name}: {found}"


def watch():
    """From now on every answer to a client that is made is compared."""
    botocore.handlers.BUILTIN_HANDLERS.append(("before-parse", check))
