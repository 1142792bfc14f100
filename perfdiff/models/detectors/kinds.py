"""The detectors by the names that a configuration gives them."""

from __future__ import annotations

from perfdiff.models.detectors.autoencoder import Autoencoder
from perfdiff.models.detectors.detector import Detector, DetectorKind, Training
from perfdiff.models.detectors.isolation import Isolation
from perfdiff.models.detectors.mahalanobis import Mahalanobis
from perfdiff.models.detectors.pca import Components
from perfdiff.models.detectors.robust import RobustZ


def learn(kind: DetectorKind, training: Training) -> Detector:
    """Learn from calls of base what is normal."""
    match kind:
        case DetectorKind.AUTOENCODER:
            return Autoencoder.learn(training)
        case DetectorKind.MAHALANOBIS:
            return Mahalanobis.learn(training)
        case DetectorKind.PCA:
            return Components.learn(training)
        case DetectorKind.ISOLATION:
            return Isolation.learn(training)
        case DetectorKind.ROBUST_Z:
            return RobustZ.learn(training)
