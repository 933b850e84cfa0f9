"""The sections on the run: convergence, the calls that repeat it, parameters, versions."""

import inspect
import platform
from importlib import metadata
from typing import Any

from polyspan import __version__
from polyspan.base import MultiViewClusterer
from polyspan.report.charts import line_chart
from polyspan.report.content import Content
from polyspan.report.markup import escape, number, setting, user
from polyspan.runtime.messages import plural


def show_convergence(c: Content) -> str:
    """What the solver measured after every iteration."""
    history = getattr(c.shown, "history_", None) or {}
    tol = c.shown.get_params(deep=False).get("tol")
    series = {
        str(name): (list(range(1, len(values) + 1)), list(values))
        for name, values in history.items()
        if len(values)
    }
    chart = line_chart(
        series,
        "Residuals of every iteration",
        "iteration",
        log=True,
        mark_y=(tol, f"tol {number(tol, 1)}") if tol else None,
    )
    if not chart:
        return ""
    last = "".join(
        f"<dt>{user(name)}</dt><dd>{number(values[-1], 2)}</dd>"
        for name, (_, values) in series.items()
    )
    return (
        "<p>What the solver measured after every iteration, on a logarithmic axis.</p>"
        f'<div class="two"><div>{chart}</div>'
        f'<div><h3>After the last iteration</h3><dl class="facts">{last}</dl></div></div>'
    )


def show_run(c: Content, date: str) -> str:
    """The calls that repeat the run, the parameters and the versions."""
    params = c.shown.get_params(deep=False)
    about = (type(c.shown).__doc__ or "").strip().split("\n")[0]
    head = f"<strong>{escape(type(c.shown).__name__)}</strong>: {escape(about)}"
    if c.n_agreeing:
        head = (
            f"The clusters are the consensus of {plural(c.n_agreeing, 'member')}. Nearest to it, "
            f"with the parameters below, is {head}"
        )
    python = _call(c.estimator if c.n_agreeing else c.shown)
    blocks = []
    if c.command:
        blocks.append(_code("command", "The command", c.command))
    if c.repeat:
        blocks.append(_code("repeat", "The command that repeats it", c.repeat))
    blocks.append(_code("python", "In Python", python))
    lines = "".join(
        f"<dt>{escape(name)}</dt><dd><code>{escape(setting(value))}</code></dd>"
        for name, value in params.items()
    )
    versions = "".join(
        f"<dt>{name}</dt><dd>{escape(version)}</dd>"
        for name, version in [
            ("polyspan", __version__),
            ("Python", platform.python_version()),
            *((name, metadata.version(name)) for name in ("numpy", "scipy", "scikit-learn")),
            ("date", date),
        ]
    )
    return (
        f"<p>{head}</p>{''.join(blocks)}"
        f'<div class="two"><div><h3>Parameters</h3><dl class="facts pairs">{lines}</dl></div>'
        f'<div><h3>Versions</h3><dl class="facts">{versions}</dl></div></div>'
    )


def _call(model: MultiViewClusterer) -> str:
    """The lines of Python that fit this estimator."""
    defaults = inspect.signature(type(model)).parameters
    given = {
        name: _typed(value)
        for name, value in model.get_params(deep=False).items()
        if name not in defaults or setting(value) != setting(defaults[name].default)
    }
    own = [model, *(getattr(model, "members", None) or [])]
    ours = {type(one).__name__ for one in own if type(one).__module__.startswith("polyspan.")}
    others = {type(one).__name__ for one in own} - ours
    lines = [
        f"from {source} import {', '.join(sorted(names))}"
        for source, names in (("polyspan", ours), ("...", others))
        if names
    ]
    call = ", ".join(f"{name}={value}" for name, value in given.items())
    lines += ["", f"labels = {type(model).__name__}({call}).fit_predict(views)"]
    return "\n".join(lines)


def _typed(value: Any) -> str:
    """A value as you would type it; members in full, so that they can be pasted."""
    if isinstance(value, list | tuple) and any(isinstance(x, MultiViewClusterer) for x in value):
        return f"[{', '.join(' '.join(repr(x).split()) for x in value)}]"
    return setting(value)


def _code(name: str, head: str, text: str) -> str:
    return (
        f'<div class="code"><div class="code-head"><h3>{head}</h3>'
        f'<button type="button" data-copy="code-{name}">Copy</button></div>'
        f'<pre tabindex="0"><code id="code-{name}">{escape(text)}</code></pre></div>'
    )
