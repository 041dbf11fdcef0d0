"""Tests; what an assertion of a helper in ``tests.support`` compared is shown as that of a test is."""

import pytest

pytest.register_assert_rewrite("tests.support")
