"""What the page shows of the run: convergence, the calls that repeat it, parameters, versions."""

import inspect
import platform
from importlib import metadata

from polyspan import __version__
from polyspan.report.charts import line_chart
from polyspan.report.content import Content
from polyspan.report.parts import escape, number, plural, setting, user
from polyspan.selection import Selection


def show_convergence(c: Content) -> str:
    """What the solver measured after every iteration."""
    history = getattr(c.estimator, "history_", None) or {}
    tol = c.estimator.get_params(deep=False).get("tol")
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
    params = c.estimator.get_params(deep=False)
    method = type(c.estimator).__name__
    defaults = inspect.signature(type(c.estimator)).parameters
    call = ", ".join(
        f"{name}={setting(value)}"
        for name, value in params.items()
        if name not in defaults or setting(value) != setting(defaults[name].default)
    )
    source = "polyspan" if type(c.estimator).__module__.startswith("polyspan.") else "..."
    python = f"from {source} import {method}\n\nlabels = {method}({call}).fit_predict(views)"
    about = (type(c.estimator).__doc__ or "").strip().split("\n")[0]
    head = f"<strong>{escape(method)}</strong>: {escape(about)}"
    if c.selection is not None and c.n_agreeing:
        python = _select_call(c.selection)
        head = (
            f"The clusters are the consensus of {plural(c.n_agreeing, 'setting')}. Nearest to it, "
            f"with the parameters below, is {head}"
        )
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


def _select_call(selection: Selection) -> str:
    """The call of `polyspan.selection.select` that gives the consensus."""
    asked = {"n_clusters": selection.n_clusters} | selection.asked
    shown = [setting(asked.pop("n_clusters"))]
    lines = ["from polyspan.selection import select"]
    if "estimator" in asked:
        method = asked["estimator"]
        source = "polyspan" if method.__module__.startswith("polyspan.") else "..."
        lines.insert(0, f"from {source} import {method.__name__}")
        shown.append(f"estimator={asked.pop('estimator').__name__}")
    if "grid" in asked:  # in full, as it can be pasted
        shown.append(f"grid={[dict(params) for params in asked.pop('grid')]!r}")
    shown += [f"{name}={setting(value)}" for name, value in asked.items()]
    return "\n".join([*lines, "", f"labels = select(views, {', '.join(shown)}).labels"])


def _code(name: str, head: str, text: str) -> str:
    return (
        f'<div class="code"><div class="code-head"><h3>{head}</h3>'
        f'<button type="button" data-copy="code-{name}">Copy</button></div>'
        f'<pre tabindex="0"><code id="code-{name}">{escape(text)}</code></pre></div>'
    )
