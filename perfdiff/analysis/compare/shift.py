"""How a cost function itself moved: class, coefficients, predictions, and where the curves part (methods §2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.compare.regimes import moved_borders, moved_modes
from perfdiff.analysis.compare.studied import Shift
from perfdiff.analysis.findings import CoefficientShift, CostPrediction
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.inference import false_discovery
from perfdiff.analysis.stats.rows import thinned
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import Annotation, blocks, design, inputs, membership, term_names
from perfdiff.models.fitting import fit, refit
from perfdiff.models.growth import growing_factors
from perfdiff.models.middle import median
from perfdiff.models.noise import NORMAL_MAD, huber_weights
from perfdiff.models.observations import columns_of
from perfdiff.models.selection import MARGIN, is_below_zero
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.schema import SampleTable

TWICE = 2.0
GRID = 400  # inputs at which the curves are compared, evenly in logarithms
ROWS = 2000  # of each side at most: beyond, precision is that of the runs, not of the calls
ROUNDS = 5  # of reweighting; outliers are settled after three


def describe(annotation: Annotation, base: SampleTable, head: SampleTable, *, differs: bool, config: CompareConfig) -> Shift:
    """Describe how the cost of `annotation.metric` moved from `base` to `head`.

    Head keeps base's structure with coefficients of its own, unless `differs` (the comparison found a different cost) and BIC and the
    joint test both reject base's class; a structure that makes head's cost negative at 0 has to be no likelier for that.
    """
    metric = annotation.metric
    base, head = thinned(base, ROWS), thinned(head, ROWS)
    try:
        same_structure = refit(annotation, head, metric, seed=config.seed)
    except (ValueError, KeyError):
        # Head's table lacks what base's structure needs.
        same_structure = fit(head, metric, seed=config.seed, function=annotation.function)
        return Shift(annotation, same_structure, _main_feature(same_structure, annotation, (base, head)), class_changed=False)
    joint = _joint(annotation, base, head, config)
    chosen, changed = same_structure, False
    if differs:
        own = fit(head, metric, seed=config.seed, function=annotation.function)
        gained = _information(same_structure, head) - _information(own, head)
        better = gained > MARGIN or (gained > 0 and _falls_below_zero(same_structure, head))
        if own.cost_class is same_structure.cost_class or (better and joint.p <= POLICY.class_level):
            chosen = own if better else same_structure
            changed = chosen.growth is not annotation.growth
    if not changed and chosen.growth is not annotation.growth:
        # The class follows the dominant term; without proof, base's name for the same terms stands.
        chosen = replace(chosen, cost_class=annotation.cost_class)
    feature = _main_feature(chosen, annotation, (base, head))
    points = _predictions(annotation, chosen, feature, base, head) if feature else ()
    crosses = _crossing(annotation, chosen, feature, base) if feature and differs else None
    return Shift(
        base=annotation,
        head=chosen,
        feature=feature,
        coefficients=joint.shifts,
        predictions=points,
        crosses=crosses,
        class_changed=changed,
        modes=moved_modes(annotation, base, head, config) if differs else (),
        borders=moved_borders(annotation, chosen) if differs else (),
    )


@dataclass(frozen=True, slots=True)
class JointFit:
    """The interactions version × term of the joint fit, and the p-value of all of them at once."""

    shifts: tuple[CoefficientShift, ...]
    p: float


def _joint(annotation: Annotation, base: SampleTable, head: SampleTable, config: CompareConfig) -> JointFit:
    """Fit base's terms to both sides at once, with version × term interactions and run-clustered covariance.

    Rows weigh by 1 / expected cost², as multiplicative noise asks, times Huber's weights. Coefficients of the interactions
    are head minus base; the interval of each has the degrees of freedom of the runs that tell it, their common test those that the
    coefficients leave of all runs.
    """
    from scipy.special import fdtrc, stdtr, stdtrit

    cost = np.concatenate([base.metrics[annotation.metric], head.metrics[annotation.metric]])
    terms = np.concatenate([design(annotation, columns_of(base)), design(annotation, columns_of(head))])
    is_head = np.arange(len(cost)) >= len(base)
    runs = np.unique(np.concatenate([base.run, head.run]), return_inverse=True)[1]
    usable = np.isfinite(cost) & np.isfinite(terms).all(axis=1)
    cost, terms, is_head, runs = cost[usable], terms[usable], is_head[usable], runs[usable]
    matrix = np.concatenate([terms, terms * is_head[:, None]], axis=1)
    clusters = len(np.unique(runs))
    if clusters <= matrix.shape[1] or np.linalg.matrix_rank((unit := _unit(matrix)).T @ unit) < matrix.shape[1]:
        return JointFit((), 1.0)
    solution, uncertainty = _clustered(matrix, cost, runs)
    covariance = uncertainty.covariance
    k = terms.shape[1]
    shift, error = solution[k:], np.sqrt(np.diag(covariance)[k:])
    freedom, own = clusters - matrix.shape[1], uncertainty.freedom[k:]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, shift / error, np.where(shift != 0, np.inf, 0.0))
    q = false_discovery((2 * stdtr(own, -np.abs(t))).tolist())
    half = stdtrit(own, (1 + config.confidence) / 2) * error
    wald = float(shift @ np.linalg.pinv(covariance[k:, k:]) @ shift) / k if error.any() else float(np.inf if shift.any() else 0.0)
    shifts = tuple(
        CoefficientShift(name, float(b), float(b + d), float(d - h), float(d + h), float(each_q))
        for name, b, d, h, each_q in zip(term_names(annotation), solution[:k], shift, half, q, strict=True)
    )
    return JointFit(shifts, float(fdtrc(k, freedom, wald)))


def _unit(matrix: Floats) -> Floats:
    norms = np.linalg.norm(matrix, axis=0)
    scaled: Floats = matrix / np.where(norms > 0, norms, 1.0)
    return scaled


@dataclass(frozen=True, slots=True)
class _Uncertainty:
    """How coefficients vary over runs: their `covariance` (k, k), and the degrees of freedom of the variance of each (k,)."""

    covariance: Floats
    freedom: Floats


def _clustered(matrix: Floats, cost: Floats, runs: Ints) -> tuple[Floats, _Uncertainty]:
    """Return the robust weighted solution (k,) and how it varies, clustered by run."""
    scale = np.linalg.norm(matrix, axis=0)
    unit = matrix / scale
    expected = np.full(len(cost), max(median(np.abs(cost)), 1e-9))
    weight = 1 / np.maximum(np.abs(cost), 0.1 * expected)
    solution = np.zeros(matrix.shape[1])
    for _ in range(ROUNDS):
        rows = unit * weight[:, None]
        solution = np.linalg.pinv(rows.T @ rows) @ (rows.T @ (cost * weight))
        fitted = np.maximum(unit @ solution, 1e-3 * expected)
        residual = (cost - unit @ solution) / fitted
        spread = NORMAL_MAD * median(np.abs(residual))
        pulled = huber_weights(residual / spread) if spread > 0 else np.ones(len(cost))
        weight = np.sqrt(pulled) / fitted
    order = np.argsort(runs, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(runs[order]) != 0])
    residual = (cost - unit @ solution) / fitted
    uncertainty = _jackknifed((unit / fitted[:, None])[order], (residual * pulled)[order], (pulled == 1)[order], first)
    return solution / scale, replace(uncertainty, covariance=uncertainty.covariance / np.outer(scale, scale))


def _jackknifed(rows: Floats, pulls: Floats, inner: Bools, first: Ints) -> _Uncertainty:
    """Return how the solution of Σ x·ψ(r) = 0 varies, by leaving out one run at a time (Bell and McCaffrey 2002, CR3).

    `rows` (n, k) are x, one run after the other from `first` (r,) on, `pulls` (n,) are ψ(r), and `inner` (n,) tells the rows whose pull
    follows their residual: the others stay where they pull the fit to whatever it becomes, so that they hold no coefficient in its place
    (Huber 1981, §7.6); weights by their pull would make intervals too narrow by an eighth. Residuals are small where a run pulls the
    fit to itself; with ten runs a side, squares of residuals make intervals too narrow as well.
    """
    clusters = len(first)
    held = rows * inner[:, None]
    parts = np.add.reduceat(held[:, :, None] * rows[:, None, :], first)
    inverses = np.linalg.pinv(parts.sum(axis=0) - parts, hermitian=True)
    scores = np.add.reduceat(rows * pulls[:, None], first)
    estimates = (inverses @ (scores.sum(axis=0) - scores)[..., None])[..., 0]
    deviations = estimates - estimates.mean(axis=0)
    covariance: Floats = (clusters - 1) / clusters * (deviations.T @ deviations)
    return _Uncertainty(covariance, _freedom(inverses, rows, pulls, first))


def _freedom(inverses: Floats, rows: Floats, pulls: Floats, first: Ints) -> Floats:
    """Return the degrees of freedom of each coefficient's variance (k,), after Satterthwaite (1946): of few runs where few tell it.

    Each run adds to the variance what the common pull of its rows and the scatter within it make of the coefficient.
    """
    sizes = np.diff(first, append=len(rows))
    run = np.repeat(np.arange(len(first)), sizes)
    means = np.add.reduceat(pulls, first) / sizes
    scatter = float(((pulls - means[run]) ** 2).sum()) / max(len(rows) - len(first), 1)
    common = max(float(np.mean(means**2 - scatter / sizes)), 0.0)
    moved = (inverses @ np.add.reduceat(rows, first)[..., None])[..., 0]
    squares = np.add.reduceat(rows[:, :, None] * rows[:, None, :], first)
    added = common * moved**2 + scatter * np.einsum("gij,gjk,gik->gi", inverses, squares, inverses)
    total, fourth = added.sum(axis=0), (added**2).sum(axis=0)
    effective = np.divide(total**2, fourth, out=np.full(len(total), float(len(first))), where=fourth > 0)
    return np.asarray(np.maximum(effective * (len(first) - rows.shape[1]) / len(first), 1.0))


def _information(annotation: Annotation, table: SampleTable) -> float:
    """Return BIC of an annotation on a table's rows, on relative residuals; correlated calls of a run count as one per size."""
    cost = table.metrics[annotation.metric]
    expected = annotation.predict(columns_of(table))
    usable = np.isfinite(cost) & (cost > 0) & np.isfinite(expected)
    if not usable.any():  # nothing speaks for any curve
        return 0.0
    cost, expected = cost[usable], expected[usable]
    least = float(np.quantile(cost, 0.01)) / 2
    residual = np.log(cost / np.maximum(expected, least))
    # Preempted calls lie far above any curve and would speak for none.
    middle = median(residual)
    spread = max(NORMAL_MAD * median(np.abs(residual - middle)), 1e-3)
    residual = np.clip(residual, middle - 4 * spread, middle + 4 * spread)
    independent = len(np.unique(np.stack([table.run[usable], np.floor(np.log2(cost)).astype(np.int64)]), axis=1).T)
    terms = sum(len(scope.terms) for scope in annotation.scopes)
    return independent * float(np.log(np.mean(residual**2) + 1e-6)) + terms * float(np.log(max(independent, 2)))


def _falls_below_zero(annotation: Annotation, table: SampleTable) -> bool:
    """Return whether a cost of one growing term `is_below_zero` at 0, which a cost at all inputs cannot be."""
    if len(annotation.scopes) != 1 or len(annotation.scopes[0].terms) != 2:
        return False
    (scope,) = annotation.scopes
    intercept, growing = sorted(scope.terms, key=lambda term: len(term.factors))
    if intercept.factors or growing.coefficient <= 0:
        return False
    unit = replace(annotation, scopes=(replace(scope, terms=(replace(growing, coefficient=1.0),)),))
    cost, grows = table.metrics[annotation.metric], unit.predict(columns_of(table))
    usable = np.isfinite(cost) & (cost > 0) & np.isfinite(grows)
    if not usable.any() or grows[usable].min() <= 0:
        return False
    alone = replace(growing, coefficient=float(np.exp(median(np.log(cost[usable] / grows[usable])))))
    through_zero = replace(annotation, scopes=(replace(scope, terms=(alone,)),))
    gained = _information(through_zero, table) - _information(annotation, table)
    return is_below_zero(intercept.coefficient, float(grows[usable].min()), gained, MARGIN)


def _main_feature(head: Annotation, base: Annotation, tables: tuple[SampleTable, SampleTable]) -> str | None:
    """Return the numeric feature that the cost moves with most, head's first; `tables` are base's calls and head's."""
    for annotation, table in ((head, tables[1]), (base, tables[0])):
        moved = _moved(annotation, table)
        if moved:
            return max(sorted(moved), key=lambda name: moved[name])
    return None


def _moved(annotation: Annotation, table: SampleTable) -> dict[str, float]:
    """Return how far each numeric feature moves the cost of all calls, over the values that it has in the scopes that grow with it.

    Beyond these a scope says nothing: one of texts of four letters would grow by the lengths of lists, which have a scope of their own.
    """
    columns = columns_of(table)
    moved: dict[str, float] = {}
    for scopes in blocks(annotation):
        inside = membership(scopes, columns, len(table)) > 0
        for scope in scopes:
            for name in {name for term in scope.terms for name, _ in growing_factors(term.factors, annotation.ranges)}:
                column = columns.get(name, np.empty(0))
                values = column[inside & np.isfinite(column)] if len(column) else column
                ends = np.array([values.min(), values.max()]) if len(values) else np.zeros(2)
                low, high = scope.expected(inputs(annotation, {name: ends})[0], 2)
                moved[name] = moved.get(name, 0.0) + scope.share * abs(float(high - low))
    return moved


def _predictions(base: Annotation, head: Annotation, feature: str, *tables: SampleTable) -> tuple[CostPrediction, ...]:
    """Return both sides' cost at the median and 95th percentile of the inputs, and at 2 and 10 times the latter (trend-prof §4.2)."""
    columns = [columns_of(table).get(feature, np.empty(0)) for table in tables]
    values = np.concatenate([column[np.isfinite(column)] for column in columns])
    if not len(values):
        return ()
    middle, high = (float(x) for x in np.quantile(values, (0.5, 0.95)))
    largest = float(values.max())
    inputs = np.array(sorted({middle, high, 2 * high, 10 * high}))
    costs = (base.predict({feature: inputs}), head.predict({feature: inputs}))
    return tuple(
        CostPrediction({feature: float(x)}, max(float(b), 0.0), max(float(h), 0.0), bool(x > largest))
        for x, b, h in zip(inputs, *costs, strict=True)
    )


def _crossing(base: Annotation, head: Annotation, feature: str, table: SampleTable) -> float | None:
    """Return the input from which on head costs twice what base costs, up to 10 times the largest measured; None if always or never."""
    low, high = base.ranges.get(feature) or head.ranges.get(feature, (0.0, 0.0))
    if high <= 0:
        return None
    inputs = np.geomspace(max(low, high * 1e-4, 1e-9), 10 * high, GRID)
    before, after = (np.maximum(annotation.predict({feature: inputs}), 0.0) for annotation in (base, head))
    least = float(np.nanquantile(table.metrics[base.metric], 0.01)) / 2
    twice = after >= TWICE * np.maximum(before, least)
    if twice.all() or not twice[-1]:
        return None
    return float(inputs[np.flatnonzero(~twice)[-1] + 1])
