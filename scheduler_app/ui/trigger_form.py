"""A form from the params of a DAG: each one's JSON Schema says which control asks for it and how text becomes a value.

Pure: no request, no database. The action checks the values against the schemas; here only their text is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.utils.translation import gettext as _

#: Up to so many choices are radio buttons, more are a select box.
RADIO_CHOICES: Final = 4
#: JSON Schema format → type of the input
FORMATS: Final = {
    "date": "date",
    "date-time": "datetime-local",
    "time": "time",
    "email": "email",
    "uri": "url",
    "idn-email": "email",
}
NOT_SET: Final = ""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    #: text | textarea | number | switch | radio | select | many | lines | json
    control: str
    label: str
    help: str
    required: bool
    #: what the control shows: text, a bool for a switch, a list of texts for "many"
    value: Any
    input_type: str = "text"
    choices: tuple[tuple[str, str], ...] = ()
    examples: tuple[str, ...] = ()
    #: the help as markdown; it goes before ``help``
    help_md: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    section: str = ""
    #: the control may be left empty, which means null
    nullable: bool = False
    #: "integer", "number", "string" …: what the text is read as
    kind: str = "string"


def fields(params: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> list[Field]:
    """A field for each param, in the order of the file; ``values`` (a run's conf, the address) go before defaults."""
    given = values or {}
    return [_field(name, param, given) for name, param in params.items()]


def sections(found: list[Field]) -> list[tuple[str, list[Field]]]:
    """The fields grouped by their section, those without one first."""
    grouped: dict[str, list[Field]] = {"": []}
    for one in found:
        grouped.setdefault(one.section, []).append(one)
    return [(name, members) for name, members in grouped.items() if members]


def _field(name: str, param: Mapping[str, Any], given: Mapping[str, Any]) -> Field:
    schema = param.get("schema") or {}
    kind, nullable = _kind(schema, param.get("value"))
    value = given[name] if name in given else param.get("value")
    control, choices = _control(kind, schema)
    return Field(
        name=name,
        control=control,
        label=str(schema.get("title") or name),
        help=str(param.get("description") or schema.get("description") or ""),
        help_md=str(schema.get("description_md") or ""),
        required="value" not in param and not nullable and control != "switch",
        value=_shown(value, control),
        input_type="number" if kind in ("integer", "number") else FORMATS.get(str(schema.get("format")), "text"),
        choices=choices,
        examples=tuple(map(str, schema.get("examples") or ())) if control in ("text", "number") else (),
        attributes=_attributes(kind, schema),
        section=str(schema.get("section") or ""),
        nullable=nullable,
        kind=kind,
    )


def _kind(schema: Mapping[str, Any], value: Any) -> tuple[str, bool]:
    """The one type that is not null, and whether null is allowed. Without a type the default's type says it."""
    types = schema.get("type")
    listed = [types] if isinstance(types, str) else list(types or ())
    nullable = "null" in listed
    concrete = [one for one in listed if one != "null"]
    if len(concrete) == 1:
        return str(concrete[0]), nullable
    if concrete or nullable:
        return "json", nullable
    for kind, python in (("boolean", bool), ("integer", int), ("number", float), ("string", str), ("array", list)):
        if isinstance(value, python):
            return kind, False
    return ("string" if schema.get("enum") else "json"), value is None


def _control(kind: str, schema: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    names = schema.get("values_display") or {}
    if schema.get("enum"):
        choices = tuple((_text(one), str(names.get(str(one), one))) for one in schema["enum"])
        return ("radio" if len(choices) <= RADIO_CHOICES else "select"), choices
    if kind == "boolean":
        return "switch", ()
    if kind in ("integer", "number"):
        return "number", ()
    if kind == "array":
        items = schema.get("items") or {}
        offered = items.get("enum") or schema.get("examples") or ()
        if offered:
            return "many", tuple((_text(one), str(names.get(str(one), one))) for one in offered)
        return ("lines" if items.get("type", "string") == "string" else "json"), ()
    if kind == "string":
        return ("textarea" if schema.get("format") == "multiline" else "text"), ()
    return "json", ()


def _attributes(kind: str, schema: Mapping[str, Any]) -> dict[str, str]:
    names = {
        "minimum": "min",
        "maximum": "max",
        "multipleOf": "step",
        "minLength": "minlength",
        "maxLength": "maxlength",
    }
    found = {names[key]: str(schema[key]) for key in names if key in schema}
    if kind == "number" and "step" not in found:
        found["step"] = "any"
    if kind == "string" and "pattern" in schema:
        found["pattern"] = str(schema["pattern"])
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shown(value: Any, control: str) -> Any:
    if control == "switch":
        return bool(value)
    if control == "many":
        return [_text(one) for one in value] if isinstance(value, list) else []
    if value is None:
        return ""
    if control == "lines" and isinstance(value, list):
        return "\n".join(map(str, value))
    if control == "json":
        return json.dumps(value, indent=2, ensure_ascii=False)
    return _text(value)


def typed(found: list[Field], posted: Mapping[str, Any]) -> list[Field]:
    """The fields with what was typed into them, whether it can be read or not: a refused form loses nothing."""
    return [replace(one, value=_typed(one, posted.get(f"param.{one.name}", []))) for one in found]


def _typed(one: Field, texts: list[str]) -> Any:
    if one.control == "switch":
        return bool(texts)
    return texts if one.control == "many" else texts[0] if texts else ""


def read(found: list[Field], posted: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The conf that a posted form asks for, and errors by param. ``posted`` maps names to lists of texts."""
    conf: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for one in found:
        texts = posted.get(f"param.{one.name}", [])
        try:
            value = _read(one, texts)
        except ValueError as error:
            errors[one.name] = str(error)
            continue
        if value is not NOT_SET or (one.kind == "string" and not one.required and not one.nullable):
            conf[one.name] = value
        elif one.nullable:
            conf[one.name] = None
        elif one.required:
            errors[one.name] = _("This param needs a value.")
    return conf, errors


def _read(one: Field, texts: list[str]) -> Any:
    """The value of one control; NOT_SET when it was left empty. Raises ValueError with a sentence."""
    if one.control == "switch":
        return bool(texts)
    if one.control == "many":
        return [_choice(text, one) for text in texts]
    text = texts[0] if texts else ""
    if one.control == "lines":
        return [line.strip() for line in text.splitlines() if line.strip()]
    if not text.strip():
        return NOT_SET
    if one.control in ("radio", "select"):
        return _choice(text, one)
    if one.control == "number":
        return _number(text, one.kind)
    if one.control == "json":
        return _json(text)
    return text.replace("\r\n", "\n")


def read_conf(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A run's configuration that was typed as JSON, and what is wrong with it by the name of its field, "conf"."""
    try:
        conf = _json(text) if text.strip() else {}
    except ValueError as error:
        return {}, {"conf": str(error)}
    if not isinstance(conf, dict):
        return {}, {"conf": _('The configuration must be a JSON object, like {"day": "2030-01-31"}.')}
    return conf, {}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(_("This is not JSON: %(error)s") % {"error": error}) from None


def _choice(text: str, one: Field) -> Any:
    """A choice is posted as its text; what is no text by itself was written as JSON."""
    if text not in dict(one.choices):
        raise ValueError(_("“%(text)s” is none of the choices.") % {"text": text})
    if one.kind == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _number(text: str, kind: str) -> int | float:
    try:
        number = float(text)
        if kind == "integer" or (number.is_integer() and "." not in text and "e" not in text.lower()):
            return int(text)
    except ValueError:
        message = _("“%(text)s” is no whole number.") if kind == "integer" else _("“%(text)s” is no number.")
        raise ValueError(message % {"text": text}) from None
    return number
