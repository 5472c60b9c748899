"""The command line. Each command imports what it needs when it runs, so that ``kvstudy --help`` is quick and
looking at runs never loads what starts processes.

An error is one line: what is wrong, where, and below it what to do. Exit code 2 for wrong input, 1 for
anything else that failed, 130 after Ctrl-C. ``--debug`` adds the traceback.
"""

import errno
import locale
import os
import re
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
from click.core import ParameterSource

from kvstudy import __version__
from kvstudy.errors import LITTLE_ROOM, InputError, KvstudyError, no_folder, what_to_do
from kvstudy.project import project_root, raw_root, reference_root, study_root, tidy_root
from kvstudy.units import counted, format_duration, parse_duration_s


class File(click.Path):
    """A path. An empty one would be the folder that one is in."""

    def convert(
        self, value: object, parameter: click.Parameter | None, context: click.Context | None
    ) -> object:
        if value == "":
            self.fail("an empty name; write a path", parameter, context)
        return super().convert(value, parameter, context)


FILE = File(path_type=Path)
PRESET_HELP = (
    "Which preset of the files: quick, full, smoke or reference (default: quick where a file has it)."
)
EXPERIMENT_FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)


def _by_older_name(_context: click.Context, _option: click.Option, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(f"--profile is called --preset: --preset {value}")


OLDER_PRESET = click.option(
    "--profile", hidden=True, expose_value=False, is_eager=True, callback=_by_older_name
)


def preset_option(command: Callable) -> Callable:
    return click.option("--preset", metavar="NAME", help=PRESET_HELP)(OLDER_PRESET(command))


ONLY = click.option(
    "--only",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only runs with this value of a factor. Given several times, values of one key are alternatives, "
    "and all keys must fit.",
)


class Duration(click.ParamType):
    """``90s``, ``30m``, ``1h`` → seconds."""

    name = "duration"

    def convert(
        self, value: object, parameter: click.Parameter | None, context: click.Context | None
    ) -> float:
        try:
            return parse_duration_s(value)
        except ValueError as error:
            self.fail(str(error), parameter, context)


def _utf8(
    _context: click.Context, _parameter: click.Parameter, text: str | tuple[str, ...] | None
) -> str | tuple[str, ...] | None:
    """A word, or several, that no file could hold would cost what it is written for."""
    try:
        "".join(text or "").encode()
    except UnicodeEncodeError:
        raise click.BadParameter(f"not text in UTF-8: {text!r}") from None
    return text


def _label(context: click.Context, parameter: click.Parameter, text: str) -> str:
    from kvstudy.plan.labels import check_label

    check_label(_utf8(context, parameter, text))
    return text


def _refuse_together(option: str, *others: str) -> None:
    """UsageError where ``option`` was typed and also one of ``others``, which would say nothing then."""
    source_of = click.get_current_context().get_parameter_source
    for other in others:
        if source_of(option) == source_of(other) == ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{option} excludes --{other}")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kvstudy")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def commands(context: click.Context, debug: bool) -> None:
    """A performance study of a key-value service that anyone can run again.

    Ends with 0 if all went well, 1 if anything failed, as a single run, 2 where the input is wrong, and 130
    if it was interrupted.
    """
    context.obj = {"debug": debug}


@commands.command(short_help="Show the runs of experiments, how long they take; run none.")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=FILE)
@preset_option
@ONLY
@click.option("--total", is_flag=True, help="Only what all of them take together.")
@click.option(
    "--duets",
    multiple=True,
    metavar="FILE",
    type=FILE,
    help="The duets of this file too, as kvstudy compare measures them; may be given several times.",
)
@click.option(
    "--commands",
    is_flag=True,
    help="Only the commands that measure these files, runs and duets, and how long each takes.",
)
def plan(
    files: tuple[Path, ...],
    preset: str | None,
    only: tuple[str, ...],
    total: bool,
    duets: tuple[Path, ...],
    commands: bool,
) -> None:
    """Show the runs of experiments, their order and how long they take; run nothing."""
    from kvstudy.plan.commands import commands_of, duets_of
    from kvstudy.plan.comparison import comparisons
    from kvstudy.plan.refusal import naming
    from kvstudy.plan.show import as_duets_line, command_lines, duet_lines, plan_lines, total_line

    _refuse_together("commands", "total", "duets")
    if not files and not duets:
        raise click.UsageError("Missing argument 'FILE...'.")

    def left_out(file: Path) -> None:
        click.echo(f"left out: {file}: it has no preset {preset}", err=True)

    if commands:
        for line in command_lines(commands_of(files, preset, only, left_out)):
            click.echo(line)
        return
    plans = _plans(files, preset, only)
    to_compare = []
    for file in duets:
        with naming(file, (*files, *duets)):
            to_compare += comparisons(_to_compare(file, preset))
    if total or len(plans) + len(to_compare) > 1:
        click.echo(total_line(plans, to_compare))
    if total:
        return
    for file, one in zip(files, plans, strict=True):
        for line in plan_lines(one):
            click.echo(line)
        try:
            if file not in duets and (compared := duets_of(file, one.experiment, only)):
                click.echo(as_duets_line(compared))
        except KvstudyError as error:  # its runs can be measured all the same
            click.echo(f"as a duet: not possible: {error.message}")
    for line in duet_lines(to_compare):
        click.echo(line)


HOSTS = click.option(
    "--hosts",
    "hosts_file",
    metavar="FILE",
    type=FILE,
    help="Measure on the machines of this file (docs/hosts.md): the service on one, generators on others.",
)
GENERATORS = click.option(
    "--generators",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    metavar="N",
    help="With --hosts: how many hosts make the load of a run, or of a duet, together.",
)


@commands.command(short_help="Run experiments; every run is sealed under data/raw.")
@EXPERIMENT_FILES
@preset_option
@ONLY
@HOSTS
@GENERATORS
@click.option(
    "--label",
    default="",
    callback=_label,
    help="A name for this series of runs, as before or after. Two labels are measured one after the other: a "
    "machine that drifts meanwhile looks like a change. `kvstudy compare` measures two sides in turn.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Keep sealed runs of the same configuration, label, script, JDK and programs on this machine; run "
    "what is missing.",
)
@click.option(
    "--retries",
    type=click.IntRange(0, 10),
    default=0,
    show_default=True,
    metavar="N",
    help="Measure runs again, each at most N times, when other programs or the machine's host took the CPU; "
    "the disturbed ones stay.",
)
@click.option(
    "--patience",
    type=Duration(),
    default="0s",
    show_default=True,
    metavar="TIME",
    help="Let runs wait until other programs and the machine's host leave the CPU alone; all of them "
    "together at most this long: 90s, 30m.",
)
def run(
    files: tuple[Path, ...],
    preset: str | None,
    only: tuple[str, ...],
    hosts_file: Path | None,
    generators: int,
    label: str,
    resume: bool,
    retries: int,
    patience: float,
) -> None:
    """Run experiments, one after the other; every run is sealed under data/raw."""
    from kvstudy.measure.execute import execute
    from kvstudy.measure.quiet import Patience
    from kvstudy.plan.show import total_line

    hosts = _hosts(hosts_file, generators)
    plans = _plans(files, preset, only)
    root = project_root()  # before the first line
    click.echo(total_line(plans), err=True)
    for warning in filter(None, (_measured_apart(one.experiment.name, label) for one in plans)):
        click.echo(warning, err=True)
    stopped: list[str] = []
    waiting = Patience(patience)
    for one in plans:
        try:
            result = execute(
                one.experiment,
                root,
                label=label,
                resume=resume,
                only=only,
                retries=retries,
                patience=waiting,
                hosts=hosts,
                generators=generators,
            )
        except KvstudyError as error:
            if len(plans) == 1:
                raise
            click.echo(_as_called(f"kvstudy: {one.experiment.name}: {error}"), err=True)
            stopped.append(one.experiment.name)
            continue
        click.echo(result.summary())
        if result.disturbed:
            click.echo(
                f"{one.experiment.name}: other programs, or the machine's host, disturbed "
                f"{result.disturbed} of {counted(result.planned, 'run')}\n"
                "  when it is quiet: the same kvstudy run with --resume --retries 1 --patience 30m",
                err=True,
            )
        if result.failed:
            click.echo(
                f"kvstudy: {one.experiment.name}: runs failed: {len(result.failed)} of "
                f"{result.planned}; first: {result.failed[0].facts['outcome']}\n"
                f"  see {result.failed[0].path}",
                err=True,
            )
            stopped.append(one.experiment.name)
    if stopped:
        raise KvstudyError(
            f"not measured in full: {', '.join(stopped)}",
            "the reason stands above; the same command with --resume runs what is missing",
        )


class Percent(click.ParamType):
    """``5%`` or ``5`` → 5.0."""

    name = "percent"

    def convert(
        self, value: object, parameter: click.Parameter | None, context: click.Context | None
    ) -> float:
        try:
            percent = float(str(value).removesuffix("%"))
        except ValueError:
            percent = 0.0
        return (
            percent
            if 0 < percent < 100
            else self.fail(f"not a percentage: {value!r}; as 5%", parameter, context)
        )


@commands.command(short_help="Which of two is faster? Both alive at once, loaded in turn.")
@EXPERIMENT_FILES
@click.option(
    "--builds",
    nargs=2,
    metavar="A B",
    help="Two revisions of the service, or jars of it (before/kv-service.jar); . is the checkout as it "
    "is. B is compared with A.",
)
@click.option(
    "--baseline",
    metavar="KEY=VALUE",
    help="Value that all others are compared with (of two the first; needed with more). `--baseline default` "
    "is the side of which no option is given.",
)
@click.option(
    "--within",
    type=Duration(),
    metavar="TIME",
    help="How long launches may go on, builds and fills apart (default: the file's, else 10m); as many as "
    "fit in, whatever number of them the file gives.",
)
@click.option(
    "--same",
    type=Percent(),
    metavar="PERCENT",
    help="Sides that differ by less are the same (default: the file's, else 5%).",
)
@click.option(
    "--primary",
    metavar="MEASURE",
    help="Measure decided first, with 5 % error for itself: p50, p90, p99, p99-slice, "
    "p99.9, mean, cpu, written or rate (default: the file's, else p50).",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="NAME",
    help="Only this workload of the file; may be given several times.",
)
@ONLY
@preset_option
@HOSTS
@GENERATORS
@click.option("--label", default="", callback=_label, help="A name for this duet.")
@click.option("--resume", is_flag=True, help="Go on with the newest duet of the same sides and builds.")
@click.option(
    "--patience", type=Duration(), default="0s", show_default=True, metavar="TIME", help="As of kvstudy run."
)
@click.option("--markdown", is_flag=True, help="Print the answer as a Markdown table, for a pull request.")
def compare(
    files: tuple[Path, ...],
    builds: tuple[str, str] | None,
    baseline: str | None,
    within: float | None,
    same: float | None,
    primary: str | None,
    workloads: tuple[str, ...],
    only: tuple[str, ...],
    preset: str | None,
    hosts_file: Path | None,
    generators: int,
    label: str,
    resume: bool,
    patience: float,
    markdown: bool,
) -> None:
    """Which of two is faster? Both alive at once, loaded in turn, until it is decided or the time is over.

    The sides are two builds, or the two values of a factor of each FILE (its key `compare` may choose them).
    Each launch is sealed under data/raw; Ctrl-C keeps what is sealed."""
    from kvstudy.measure.compare import compare as measured
    from kvstudy.measure.duet_table import none_counts, others_alone, table_lines
    from kvstudy.measure.quiet import Patience
    from kvstudy.plan.comparison import changed, comparisons
    from kvstudy.plan.refusal import naming
    from kvstudy.plan.show import total_line

    _refuse_together("builds", "baseline")
    hosts = _hosts(hosts_file, generators)
    all_of_it = []
    own = {"baseline": baseline, "within": within, "same": same, "primary": primary}
    for file in files:
        with naming(file, files):
            experiment = changed(_to_compare(file, preset), **own)
            chosen = (*only, *(f"workload={name}" for name in workloads))
            all_of_it += comparisons(experiment, builds=builds, only=chosen)
    _check_names([file.stem for file in files])
    root = project_root()  # before the first line
    if len(files) > 1:
        click.echo(total_line([], all_of_it), err=True)
    waiting, stopped = Patience(patience), []
    for one in all_of_it:
        click.echo(
            f"{one.names[1]} beside {one.names[0]}: {' '.join(load.workload for load in one.loads)}; a "
            "launch takes about "
            f"{format_duration(round(one.launch_s))}, all at most {format_duration(one.comparing.within)}",
            err=True,
        )
        try:
            duet = measured(
                one,
                root,
                label=label,
                resume=resume,
                patience=waiting,
                hosts=hosts,
                generators=generators,
            )
            for line in table_lines(duet.found, duet.over, markdown):
                click.echo(line)
            if duet.launches and all(run.facts["outcome"] != "completed" for run in duet.launches):
                raise KvstudyError(
                    f"no launch was completed; the first: {duet.launches[0].facts['outcome']}",
                    f"see {duet.launches[0].path}",
                )
            if duet.launches and not duet.found.counted:
                none = KvstudyError(*none_counts(duet.found, duet.launches[-1]))
                if not (duet.launches[-1].is_smoke and others_alone(duet.found)):
                    raise none
                click.echo(_as_called(str(none)), err=True)  # all works, which is what it was to prove
        except KvstudyError as error:
            if len(all_of_it) == 1:
                raise
            of = one.experiment.name if len(files) > 1 else one.names[1]
            click.echo(_as_called(f"kvstudy: {of}: {error}"), err=True)
            stopped.append(of)
    if stopped:
        raise KvstudyError(
            f"not measured in full: {', '.join(dict.fromkeys(stopped))}",
            "the reason stands above; the same command with --resume goes on",
        )


def _to_compare(file: Path, preset: str | None):
    """The experiment of a file with the keys of its ``compare``."""
    from kvstudy.plan.experiment import Experiment

    return Experiment.load(file, preset, compared=True)


def _measured_apart(experiment: str, label: str) -> str | None:
    """A warning where runs of another label are there already: these come all after them."""
    from kvstudy.record.run_folder import known_runs

    folder = raw_root(project_root()) / experiment
    others = (
        sorted({run.facts["label"] for run in known_runs(folder)} - {label, ""})
        if label and folder.is_dir()
        else []
    )
    if not others:
        return None
    return (
        f"{experiment}: label {label} is measured apart from {', '.join(others)}: a machine that "
        "drifts meanwhile looks like a change. With a drift of 5 % "
        "such a comparison says a false word in three of ten"
    )


def _plans(files: tuple[Path, ...], preset: str | None, only: tuple[str, ...]) -> list:
    """All plans before anything is started, so that a mistake in the last file is found first."""
    from kvstudy.plan.experiment import Experiment
    from kvstudy.plan.refusal import naming
    from kvstudy.plan.run_plan import plan as plan_of
    from kvstudy.plan.selection import selected

    plans = []
    for file in files:
        with naming(file, files):
            plans.append(selected(plan_of(Experiment.load(file, preset)), only))
    _check_names([one.experiment.name for one in plans])
    return plans


def _check_names(names: list[str]) -> None:
    """UsageError for two files of one name: their runs would lie in one folder."""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise click.UsageError(f"two files of one name, of which runs are kept together: {twice[0]}")


def _with_preset(names: tuple[str, ...], preset: str) -> tuple[str, ...]:
    """The experiments whose file is there and has this preset; the others are named."""
    from kvstudy.plan.refusal import read_yaml

    found = []
    for name in names:
        file = project_root() / "experiments" / f"{name}.yaml"
        if not file.is_file():
            click.echo(f"left out: {name}: there is no {file}", err=True)
        elif preset not in ((values := read_yaml(file)[0]).get("presets") or ()) and "profiles" not in values:
            click.echo(f"left out: {name}: its file has no preset {preset}", err=True)
        else:
            found.append(name)
    return tuple(found)


def _hosts(file: Path | None, generators: int = 1):
    """The hosts of a file; None where none was given."""
    from kvstudy.hosts.hosts_file import HostsFile

    if generators > 1 and file is None:
        raise click.UsageError("--generators needs --hosts")
    return HostsFile.load(file) if file else None


@commands.group(short_help="Other machines to measure on: look, cluster up, cluster down.")
def hosts() -> None:
    """Other machines to measure on: look at them, put up a cluster, take it down (docs/hosts.md)."""


HOSTS_FILE = click.argument("file", metavar="FILE", type=FILE)


@hosts.command("check", short_help="What each host has and what it lacks, with what to do.")
@HOSTS_FILE
def hosts_check(file: Path) -> None:
    """What each host has and what it lacks, one line each, with what to do."""
    from kvstudy.measure.hosts_check import examine

    checked = examine(_hosts(file))
    for one in checked:
        click.echo(one.line())
        for hint in one.wrong:
            click.echo(f"    → {hint}")
    if wrong := [one.name for one in checked if one.wrong]:
        raise KvstudyError(f"not ready: {', '.join(wrong)}", "each line above says what to do")


@hosts.command("up", short_help="Put up a cluster on the hosts; it stays until `hosts down`.")
@HOSTS_FILE
def hosts_up(file: Path) -> None:
    """Put up a cluster on the hosts, over SSH; it stays until kvstudy hosts down."""
    from kvstudy.hosts.cluster import up
    from kvstudy.hosts.session import Session
    from kvstudy.project import work_root

    given, work = _hosts(file), work_root(project_root())
    if not given.ssh:
        raise KvstudyError(f"its cluster is up already: {given.scheduler}", "there is nothing to put up")
    with Session(work):  # a measurement that goes on may have put up its own
        facts = up(given, work)
    click.echo(f"cluster of {len(facts['workers'])} hosts: {facts['scheduler']}")


@hosts.command("down")
@HOSTS_FILE
def hosts_down(file: Path) -> None:
    """Take the cluster down; nothing of it is left running."""
    from kvstudy.hosts.cluster import down
    from kvstudy.hosts.session import Session
    from kvstudy.project import work_root

    given, work = _hosts(file), work_root(project_root())
    if not given.ssh:
        raise KvstudyError(f"its cluster is not kvstudy's: {given.scheduler}", "who put it up takes it down")
    with Session(work):  # a measurement that goes on may use it
        left = down(given, work)
    if left:
        raise KvstudyError(
            f"not reached: {', '.join(left)}",
            "their workers end by themselves, since their scheduler has ended",
        )
    click.echo("cluster is down")


@commands.command(short_help="Recompute the checksums of sealed runs.")
@click.argument("paths", nargs=-1, type=FILE)
def verify(paths: tuple[Path, ...]) -> None:
    """Recompute the checksums of sealed runs: PATHS are runs or folders of runs (default: data/raw and
    data/reference)."""
    from kvstudy.errors import NotSealed, SealBroken
    from kvstudy.record.run_folder import sealed_runs
    from kvstudy.record.verification import verify as verify_run
    from kvstudy.record.verification import without_seal

    given = paths
    if not given:
        root = project_root()
        paths = (raw_root(root), reference_root(root))
    for path in given:
        if not path.is_dir():
            raise InputError(
                no_folder(path),
                "a run, an experiment or a folder of them: data/raw, data/reference/wal, …",
            )
    runs, problems = sealed_runs(*paths), without_seal(*paths)
    if not runs and not problems:
        raise NotSealed(
            f"no sealed run here: {' '.join(map(str, paths))}",
            "a sealed run holds SHA256SUMS and its folder's name has no .partial",
        )
    count = len(runs) + len(problems)
    problems += [problem for run in _progress(runs, "verifying") for problem in verify_run(run.path)]
    for problem in problems:
        click.echo(str(problem), err=True)
    if problems:
        broken = {problem.run for problem in problems}
        raise SealBroken(
            f"{len(broken)} of {count} sealed runs are not as they were sealed",
            "they are not data any more: measure them again",
        )
    was = "is as it was" if len(runs) == 1 else "are as they were"
    click.echo(f"{counted(len(runs), 'sealed run')} {was} sealed")


@commands.command(short_help="Bring the tables under data/tidy up to date with the runs.")
@click.option(
    "--cluster",
    "hosts_file",
    metavar="FILE",
    type=FILE,
    help="Let the machines of this file (docs/hosts.md) read the runs: the same tables, sooner.",
)
def tables(hosts_file: Path | None) -> None:
    """Bring the parquet tables under data/tidy up to date with the sealed runs; only new and changed runs are
    read, by all processors."""
    from contextlib import ExitStack

    from kvstudy.analyse.tables import rebuild
    from kvstudy.workers import processes

    root, hosts = project_root(), _hosts(hosts_file)
    with ExitStack() as until_end:
        spread = processes
        if hosts:
            from kvstudy.hosts.session import Session
            from kvstudy.project import work_root
            from kvstudy.tables_on_hosts import spread_over

            session = until_end.enter_context(Session(work_root(root)))
            spread = until_end.enter_context(spread_over(hosts, root, session.registered))
        rebuild(
            [path for path in (raw_root(root), reference_root(root)) if path.is_dir()],
            tidy_root(root),
            spread=spread,
        )
    click.echo(f"tables: {tidy_root(root)}")


@commands.command(short_help="Copy undisturbed runs to data/reference, for committing.")
@click.argument("experiments", metavar="[EXPERIMENT]...", nargs=-1)
@click.option(
    "--preset",
    "preset",
    default="reference",
    show_default=True,
    metavar="NAME",
    help="Only runs that this preset of their files asks for.",
)
@OLDER_PRESET
def publish(experiments: tuple[str, ...], preset: str) -> None:
    """Copy the runs of data/raw that nothing disturbed to data/reference, for committing; there they replace
    those of the same experiment.

    Launches of duets are all copied, disturbed ones too: a duet's own rules leave them out. Duets and
    independent runs do not replace each other."""
    from kvstudy.measure.search_runs import asked_for_by
    from kvstudy.record.reference import measured_experiments
    from kvstudy.record.reference import publish as publish_runs
    from kvstudy.units import format_bytes

    root = project_root()
    names = experiments or _with_preset(measured_experiments(raw_root(root)), preset)
    asked = {
        one.experiment.name: asked_for_by(one)
        for one in _plans(tuple(root / "experiments" / f"{name}.yaml" for name in names), preset, ())
    }
    for one in publish_runs(
        raw_root(root),
        reference_root(root),
        names,
        lambda run: asked[run.path.parent.name](run),
        f"its preset {preset}",
        preset,
    ):
        click.echo(
            f"{one.experiment}: {counted(one.copied, 'run')}, {format_bytes(one.size_bytes)}"
            + (f"; {one.disturbed} disturbed ones left out" if one.disturbed else "")
        )


@commands.command(short_help="Write the HTML study of the runs that are there.")
@click.option(
    "--offline",
    is_flag=True,
    expose_value=False,
    help="No effect: pages never need a network.",
)
@click.option("--out", type=FILE, help="Where to (default: figures/study).")
@click.option(
    "--experiment",
    metavar="NAME",
    help="Only the pages of this experiment, in about half a minute (default: to figures/NAME).",
)
def report(out: Path | None, experiment: str | None) -> None:
    """Execute the notebooks on the runs that are there and write the HTML study."""
    from kvstudy.present.report import export

    root = project_root()
    out = out or (root / "figures" / experiment if experiment else study_root(root))
    if experiment and out.resolve() == study_root(root).resolve():
        raise InputError(
            f"pages of one experiment would replace the whole study: {out}",
            "name another folder, as --out figures/pages-of-it",
        )
    export(root, out, experiment=experiment)
    click.echo(f"study: {(out / 'index.html').resolve().as_uri()}")


@commands.command(short_help="What the runs that are there say, as Markdown.")
def findings() -> None:
    """What the runs that are there say, as Markdown: the tables of the study's first page."""
    from kvstudy.present import answers, notebook, options
    from kvstudy.present import findings as found

    tables = notebook.all_tables()
    reference = notebook.beside(tables)
    duets = options.measured_duets()
    for text in (
        found.render(tables, answers.SERVICE, reference, duets),
        answers.summarize_options(tables, reference, duets),
        found.render(tables, answers.RULER, reference),
    ):
        click.echo(f"{text.data}\n")


@commands.command(short_help="Write an experiment for a service of your own; try it once.")
@click.argument("name")
@click.option(
    "--command",
    "words",
    metavar="WORDS",
    callback=_utf8,
    help="What starts it: 'java -jar my.jar --port {port} --data {dir}'.",
)
@click.option(
    "--file",
    multiple=True,
    metavar="NAME=PATH",
    callback=_utf8,
    help="A file of the project that --command is given in {dir}, with {port} filled in: "
    "nginx.conf=my/nginx.conf. May be given several times.",
)
@click.option("--url", metavar="URL", callback=_utf8, help="Where it runs already: http://127.0.0.1:8080.")
@click.option(
    "--ready",
    default="tcp",
    show_default=True,
    metavar="HOW",
    callback=_utf8,
    help="When it is ready: tcp, a /path that answers, or a text of a line that it writes.",
)
@click.option(
    "--path",
    default="/{key}",
    show_default=True,
    metavar="PATH",
    callback=_utf8,
    help="Where a key stands.",
)
@click.option(
    "--get",
    metavar="PATH",
    help="Only GET this path, by a script that you can change: experiments/NAME.lua.",
)
@click.option("--replace", is_flag=True, help="In the place of a file of that name.")
def new(
    name: str,
    words: str | None,
    file: tuple[str, ...],
    url: str | None,
    ready: str,
    path: str,
    get: str | None,
    replace: bool,
) -> None:
    """Write an experiment for a service of your own, experiments/NAME.yaml, and try it once.

    Give what starts it, --command, or where it runs already, --url."""
    from kvstudy.hosts.session import AlreadyMeasuring
    from kvstudy.measure.new import try_service, write

    _refuse_together("url", "ready", "file")
    _refuse_together("get", "path")
    written = write(name, project_root(), words, url, ready, path, get, replace, file)
    click.echo(f"written: {written}")
    stays = "the file stays: mend it there, or the same command with --replace"
    try:
        for line in try_service(written, project_root(), get):
            click.echo(line)
    except KvstudyError as error:
        remedy = "then the same command with --replace" if isinstance(error, AlreadyMeasuring) else stays
        hint = f"{error.hint}; {remedy}" if error.hint else remedy
        raise type(error)(f"{error.message}: in the trial of {written.name}", hint) from error
    except KeyboardInterrupt:
        click.echo(stays, err=True)
        raise
    click.echo(f"measure it: kvstudy run {written.relative_to(project_root())}")
    click.echo(f"see it: kvstudy report --experiment {name}")


@commands.command(short_help="Build the service (Maven, JDK 25) and loadgen (Cargo).")
@click.option("--test-java", is_flag=True, help="Compile the service and run its tests; make no jar.")
def build(test_java: bool) -> None:
    """Build the service (Maven, JDK 25) and the load generator (Cargo)."""
    from kvstudy.hosts.session import Session
    from kvstudy.measure import build as builder
    from kvstudy.project import work_root
    from kvstudy.subject.builds import build_service

    if test_java:
        build_service(project_root(), test=True)
    else:
        builder.build(project_root(), alone=lambda: Session(work_root(project_root())))


@commands.command(short_help="What is missing on this machine, and what installs it.")
@click.option(
    "--warm-up",
    is_flag=True,
    help="Measure instead how long the service needs to warm up here, and recommend it (about 6 minutes).",
)
def doctor(warm_up: bool) -> None:
    """What is missing on this machine, and the command that installs it."""
    from kvstudy.measure.doctor import MISSING, OK, examine

    if warm_up:
        from kvstudy.measure import warm_up as settling

        for line in settling.advice(settling.measure(project_root())):
            click.echo(line)
        return
    checks = examine(project_root())
    width = max(len(check.name) for check in checks)
    for check in checks:
        click.echo(f"{check.verdict:8}{check.name:{width}}  {check.observed}")
        if check.verdict != OK and check.hint:
            click.echo(f"{'':8}{'':{width}}  → {_as_called(check.hint)}")
    missing = [check.name for check in checks if check.verdict == MISSING]
    if missing:
        raise KvstudyError(
            f"missing on this machine: {', '.join(missing)}", "each line above says what to do"
        )


def _as_called(text: str) -> str:
    """``kvstudy build`` in a hint → ``.venv/bin/kvstudy build``, where that was called and no kvstudy is on
    PATH."""
    if Path(sys.argv[0]).name != "kvstudy" or shutil.which("kvstudy"):
        return text
    return re.sub(
        rf"(?<![\w/])kvstudy (?=({'|'.join(commands.commands)})\b)", lambda _found: f"{sys.argv[0]} ", text
    )


def _progress(items: list, what: str) -> list:
    from tqdm import tqdm

    return tqdm(items, desc=what, leave=False, delay=2)


def main(arguments: list[str] | None = None) -> None:
    """Entry point: runs a command and ends the process with its exit code."""
    if locale.setlocale(locale.LC_CTYPE) == "C":  # so too where LC_ALL names one that is not installed
        # As Python does where LANG says so: there a JVM opens no file below a folder that is not of ASCII.
        os.environ["LC_ALL"] = "C.UTF-8"
    sys.exit(exit_code_of(arguments))


def _full(error: OSError) -> list[Path]:
    """Where there is no room, if that is what an error without a file's name says."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return []
    places = []
    for place_of in (tempfile.gettempdir, project_root):
        with suppress(KvstudyError, OSError):
            places.append(Path(place_of()))
    return [place for place in places if shutil.disk_usage(place).free < LITTLE_ROOM]


def exit_code_of(arguments: list[str] | None = None) -> int:
    """Runs a command; errors are printed, never raised."""
    from kvstudy.hosts.interrupt import interruptible

    debug = "--debug" in (sys.argv[1:] if arguments is None else arguments)
    try:
        with interruptible():  # also where nothing is measured: half-written pages and copies go
            outcome = commands.main(args=arguments, prog_name="kvstudy", standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except KvstudyError as error:
        if debug:
            traceback.print_exc()
        click.echo(_as_called(f"kvstudy: {error}"), err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("kvstudy: interrupted", err=True)
        return 130
    except OSError as error:
        if debug:
            traceback.print_exc()
        places = [error.filename] if error.filename else _full(error)
        where = "".join(f"{place}: " for place in places)
        click.echo(
            f"kvstudy: {where}{(error.strerror or str(error)).lower()}\n"
            f"  {what_to_do(error) or 'kvstudy --debug … shows where it was needed'}",
            err=True,
        )
        return 1
    except Exception as error:
        if debug:
            raise
        click.echo(
            f"kvstudy: error of kvstudy itself: {type(error).__name__}: {error}\n"
            "  kvstudy --debug … shows where",
            err=True,
        )
        return 1


if __name__ == "__main__":
    main()
