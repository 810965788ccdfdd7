"""Rendering of templated fields: Jinja text, template files, and whatever is nested in lists, dicts and objects."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler_app.sdk.xcom_arg import Referencing, XComArg

if TYPE_CHECKING:
    import jinja2


#: of these exact types a value is neither a template nor a reference, and need not be asked
_CONTAINERS = frozenset({tuple, list, dict, set})


class LiteralValue:
    """A value that is not a template, although it sits in a templated field."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def iter_references(self) -> Any:
        return iter(())

    def resolve(self, context: Any) -> Any:
        return self.value


def literal(value: Any) -> LiteralValue:
    return LiteralValue(value)


class Templater:
    """Whoever has ``template_fields`` and ``template_ext`` and renders them against a context."""

    template_fields: Collection[str]
    template_ext: Sequence[str]

    def get_template_env(self, dag: Any = None) -> jinja2.Environment:
        """The Jinja environment of the DAG, or a plain one."""
        from scheduler_app.sdk.jinja_env import environment

        owner = dag or getattr(self, "dag", None)
        native = getattr(self, "render_template_as_native_obj", None)
        if owner is not None:
            return owner.get_template_env(force_native=native)
        return environment(native=bool(native))

    def prepare_template(self) -> None:
        """Hook: adapt fields before template files are read."""

    def render_template_fields(self, context: Mapping[str, Any], jinja_env: jinja2.Environment | None = None) -> Any:
        """Renders every templated field in place. Errors of Jinja go through, with the field's name in the log."""
        self._do_render_template_fields(self, self.template_fields, context, jinja_env, set())

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Collection[str],
        context: Mapping[str, Any],
        jinja_env: Any,
        seen_oids: set[int],
    ) -> None:
        for name in template_fields:
            if not hasattr(parent, name):
                raise AttributeError(
                    f"{name!r} is a template field of {type(parent).__name__}, but it has no such attribute: "
                    f"set self.{name} in __init__, or take it out of template_fields."
                )
            value = getattr(parent, name)
            try:
                rendered = self.render_template(value, context, jinja_env, seen_oids)
            except Exception as error:
                error.add_note(f"(while the template field {name!r} of {type(parent).__name__} was rendered)")
                raise
            setattr(parent, name, rendered)

    def render_template(
        self, content: Any, context: Mapping[str, Any], jinja_env: Any = None, seen_oids: set[int] | None = None
    ) -> Any:
        """``content`` with every template in it rendered; other values as they are."""
        seen = seen_oids if seen_oids is not None else set()
        if content is None or id(content) in seen:
            return content
        if type(content) in _CONTAINERS:
            return self._render_nested(content, context, jinja_env, seen)
        if isinstance(content, str):
            is_file = bool(self.template_ext) and content.endswith(tuple(self.template_ext))
            if not is_file and self._is_plain(content):  # not a template: no need to compile one
                return content[:-1] if content.endswith("\n") else content  # as Jinja has it
            # made here and not before: most attempts have nothing to render, and an environment is dear after a fork
            env = jinja_env or self._own_environment()
            template = env.get_template(content) if is_file else env.from_string(content)
            return self._render(template, context, env)
        if isinstance(content, (XComArg, Referencing, LiteralValue)) or _is_dag_param(content):
            return content.resolve(context)
        return self._render_nested(content, context, jinja_env, seen)

    def _is_plain(self, content: str) -> bool:
        """Whether Jinja would give ``content`` back. Native rendering reads "1" as a number, options may change what
        marks a template."""
        owner = getattr(self, "dag", None)
        native = getattr(self, "render_template_as_native_obj", None)
        if owner is not None:
            native = owner.render_template_as_native_obj if native is None else native
            if owner.jinja_environment_kwargs:
                return False
        return not native and "{" not in content and "\r" not in content

    def _own_environment(self) -> Any:
        """:meth:`get_template_env`, asked once."""
        env = self.__dict__.get("_jinja_env")
        if env is None:
            env = self.__dict__["_jinja_env"] = self.get_template_env()
        return env

    def _render_nested(self, content: Any, context: Mapping[str, Any], env: Any, seen: set[int]) -> Any:
        if type(content) is tuple:
            return tuple(self.render_template(item, context, env, seen) for item in content)
        if isinstance(content, tuple) and hasattr(content, "_fields"):
            return type(content)(*(self.render_template(item, context, env, seen) for item in content))
        if isinstance(content, list):
            return [self.render_template(item, context, env, seen) for item in content]
        if isinstance(content, dict):
            return {key: self.render_template(value, context, env, seen) for key, value in content.items()}
        if isinstance(content, set):
            return {self.render_template(item, context, env, seen) for item in content}
        if isinstance(content, os.PathLike) and not hasattr(content, "template_fields"):
            return content
        fields = getattr(type(content), "template_fields", None)
        if fields and not isinstance(content, type):
            seen.add(id(content))
            self._do_render_template_fields(content, fields, context, env, seen)
        return content

    def _render(self, template: Any, context: Mapping[str, Any], env: Any) -> Any:
        from scheduler_app.sdk.jinja_env import render

        return render(template, context, env)

    def resolve_template_files(self) -> None:
        """Replaces fields that name a template file, or lists of such names, by the files' texts.

        Raises jinja2.TemplateNotFound.
        """
        if self.template_ext:
            for name in self.template_fields:
                content = getattr(self, name, None)
                if isinstance(content, str) and self._is_file(content):
                    setattr(self, name, self._read(content))
                elif isinstance(content, list) and any(
                    isinstance(item, str) and self._is_file(item) for item in content
                ):
                    texts = [
                        self._read(item) if isinstance(item, str) and self._is_file(item) else item for item in content
                    ]
                    setattr(self, name, texts)
        self.prepare_template()

    def _is_file(self, content: str) -> bool:
        return content.endswith(tuple(self.template_ext))

    def _read(self, name: str) -> str:
        env = self.get_template_env()
        assert env.loader is not None
        return env.loader.get_source(env, name)[0]


def _is_dag_param(value: Any) -> bool:
    from scheduler_app.sdk.params import DagParam

    return isinstance(value, DagParam)
