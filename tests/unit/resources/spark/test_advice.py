"""What Spark advises in its errors: settings and functions that change values are left out, what happened and other advice stay."""

from __future__ import annotations

import pytest

from resources.spark.failures import root_cause
from resources.spark.process import error_line

_MALFORMED = (
    '[CAST_INVALID_INPUT] The value \'x. y\' of the type "STRING" cannot be cast to "INT" because it is malformed.'
    " Correct the value as per the syntax, or change its target type."
)
_BYPASS = 'If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error'


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            f"{_MALFORMED} Use `try_cast` to tolerate malformed input and return NULL instead. SQLSTATE: 22018",
            f"{_MALFORMED} SQLSTATE: 22018",
        ),
        (
            f"[ARITHMETIC_OVERFLOW] long overflow. Use 'try_add' to tolerate overflow and return NULL instead. {_BYPASS}. SQLSTATE: 22003",
            "[ARITHMETIC_OVERFLOW] long overflow. SQLSTATE: 22003",
        ),
        (
            f"[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] 1000 cannot be represented as Decimal(3, 2). {_BYPASS}, and return NULL instead. SQLSTATE: 22003",
            "[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] 1000 cannot be represented as Decimal(3, 2). SQLSTATE: 22003",
        ),
        (
            '[AVRO_INCOMPATIBLE_READ_TYPE] Cannot convert Avro a to SQL b. To allow reading this field, enable the SQL configuration: "spark.sql.legacy.avro.allowIncompatibleSchema".',
            "[AVRO_INCOMPATIBLE_READ_TYPE] Cannot convert Avro a to SQL b.",
        ),
        (
            'The catalog x not found. Consider to set the SQL config "spark.sql.catalog.x" to a catalog plugin.',
            'The catalog x not found. Consider to set the SQL config "spark.sql.catalog.x" to a catalog plugin.',
        ),
        (
            "pyspark.errors.exceptions.connect.ArithmeticException: [DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0.",
            "[DIVIDE_BY_ZERO] Division by zero.",
        ),
        ("Use `try_cast`.", "Use `try_cast`."),
    ],
)
def test_advice_that_changes_values_is_left_out_of_what_spark_says(text: str, kept: str) -> None:
    assert error_line(Exception(text)) == kept
    in_java = Exception(f"Job aborted.\nCaused by: org.apache.spark.SparkArithmeticException: {text}\n")
    assert root_cause(in_java) == f"SparkArithmeticException: {kept}"
