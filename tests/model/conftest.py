"""Of scikit-learn's checks, the longest are slow tests."""

from __future__ import annotations

import pytest

LONG = (
    "check_estimator_sparse_array]", "check_estimator_sparse_matrix]", "X_dtype=float32)]", "readonly_memmap=True)]",
    "check_classifiers_classes]",
    "check_estimators_dtypes]", "check_supervised_y_2d]", "check_dtype_object]", "check_classifier_data_not_an_array]",
    "check_regressor_data_not_an_array]", "check_regressors_train]",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "scikit_learns_contract" in item.name and item.name.endswith(LONG):
            item.add_marker(pytest.mark.slow)
