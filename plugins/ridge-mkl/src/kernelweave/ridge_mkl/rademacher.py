"""Generalisation bounds for learned kernels (Ridge-MKL paper, section 2.2.3)."""

from __future__ import annotations

import math

from kernelweave.kernels_core.checks import COUNT, NONNEGATIVE, POSITIVE, number

# η₀ of Cortes, Mohri and Rostamizadeh 2010.
_ETA = math.sqrt(23.0 / 11.0)


def rademacher_bound(
    n_samples: int, n_kernels: int, *, radius: float = 1.0, degree: int = 1
) -> float:
    """Return η₀ p^{d/4} R^d / √m, η₀ = √(23/11): a bound on the empirical Rademacher complexity.

    The class is {x ↦ ⟨w, Φ(x)⟩ : ‖w‖ ≤ 1, K = (Σ μₖKₖ)^{∘d}, μ ≥ 0, ‖μ‖₂ = 1}. At degree d the
    products of d kernels have coefficients of Frobenius norm ‖μ‖₂^d = 1, so the class lies in that
    of p^d kernels bounded by R^{2d}. (The paper's line for degree 2 names the linear class by
    mistake.)

    Parameters
    ----------
    n_samples : int
        m.
    n_kernels : int
        p.
    radius : float, default=1.0
        R with kₖ(x, x) ≤ R² for all k and x.
    degree : int, default=1
        d.

    Returns
    -------
    float
        The bound.

    Raises
    ------
    ValueError
        If a number is out of its range.

    References
    ----------
    Cortes, Mohri and Rostamizadeh, "Generalization bounds for learning kernels", ICML 2010.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import rademacher_bound
    >>> round(rademacher_bound(400, 16), 4)
    0.1446
    """
    for name, value in (("n_samples", n_samples), ("n_kernels", n_kernels), ("degree", degree)):
        COUNT.check(name, value)
    POSITIVE.check("radius", radius)
    return float(_ETA * n_kernels ** (degree / 4.0) * radius**degree / math.sqrt(n_samples))


def margin_bound(
    n_samples: int,
    n_kernels: int,
    *,
    margin: float,
    empirical_margin_loss: float = 0.0,
    delta: float = 0.05,
    radius: float = 1.0,
    degree: int = 1,
) -> float:
    """Return R̂_ρ(h) + (2/ρ)·η₀ p^{d/4} R^d/√m + 3 √(log(2/δ)/(2m)), a bound on the risk of h.

    It holds with probability 1 − δ for all h of the class of `rademacher_bound`. The factor of the
    middle term is 2η₀ = √(92/11), by the margin theorem with the empirical Rademacher complexity;
    the paper prints η₁ = √(46/11), which does not follow from its η₀, so it is left out.

    Parameters
    ----------
    n_samples : int
        m.
    n_kernels : int
        p.
    margin : float
        ρ > 0.
    empirical_margin_loss : float, default=0.0
        R̂_ρ(h), the share of training samples with yh(x) < ρ.
    delta : float, default=0.05
        δ in (0, 1).
    radius : float, default=1.0
        R.
    degree : int, default=1
        d.

    Returns
    -------
    float
        The bound, which is trivial above 1.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> from kernelweave.ridge_mkl import margin_bound
    >>> round(margin_bound(100_000, 10, margin=0.5, empirical_margin_loss=0.1), 4)
    0.1454
    """
    POSITIVE.check("margin", margin)
    number(above=0.0, below=1.0).check("delta", delta)
    NONNEGATIVE.check("empirical_margin_loss", empirical_margin_loss)
    if empirical_margin_loss > 1.0:
        raise ValueError(f"empirical_margin_loss must be a share, got {empirical_margin_loss!r}")
    complexity = rademacher_bound(n_samples, n_kernels, radius=radius, degree=degree)
    confidence = 3.0 * math.sqrt(math.log(2.0 / delta) / (2.0 * n_samples))
    return empirical_margin_loss + 2.0 / margin * complexity + confidence
