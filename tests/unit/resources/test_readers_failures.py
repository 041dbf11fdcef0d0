"""What is told of an error of Spark: its cause, whole."""

from __future__ import annotations

import pytest

from resources.sources.files.checked import BadRecord
from resources.sources.files.failures import bad_header_error, bad_records_error, inexact_value_error
from resources.sources.files.spark_failures import explain_unreadable, find_bad_file
from resources.spark.failures import root_cause

LONG = "no room left on " + "x" * 400

S3A = (
    "(java.nio.file.AccessDeniedException) s3a://bucket/t/_delta_log: listObjects() on s3a://bucket/t/_delta_log: software.amazon.awssdk"
    ".services.s3.model.S3Exception: The access key ID you provided does not exist in our records. (Service: S3, Status Code: 403, Request"
    " ID: 18EA70D6054B89663A57A595):InvalidAccessKeyId\n\nJVM stacktrace:\njava.nio.file.AccessDeniedException\n\tat a.B\nCaused by: software"
    ".amazon.awssdk.services.s3.model.S3Exception: The access key ID you provided does not exist in our records. (Service: S3, Status Code:"
    " 403, Request ID: 18EA70D6054B89663A57A595)\n\tat c.D"
)
NO_BUCKET = (
    "(org.apache.hadoop.fs.s3a.UnknownStoreException) `s3a://no-such-bucket/a.json': getFileStatus on s3a://no-such-bucket/a.json:"
    " software.amazon.awssdk.services.s3.model.NoSuchBucketException: The specified bucket does not exist (Service: S3, Status Code: 404,"
    " Request ID: 1):NoSuchBucket: The specified bucket does not exist (Service: S3, Status Code: 404, Request ID: 1)"
)
SILENT = (
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3a://bucket/in/a.json. SQLSTATE: KD001\nCaused by:"
    " org.apache.hadoop.net.ConnectTimeoutException: x\nCaused by: software.amazon.awssdk.core.exception.SdkClientException: Unable to"
    " execute HTTP request: Connect to 127.0.0.1:1 failed: Connection refused:    software.amazon.awssdk.core.exception.SdkClientException:"
    " Unable to execute HTTP request: Connect to 127.0.0.1:1 failed: Connection refused: Connection refused\n\tat c.D"
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            f"(org.apache.spark.SparkException) Job aborted\n\tat a.B.c(B.java:1)\nCaused by: a.b.X: x\n\tat d\nCaused by: java.io.IOException: {LONG}\n\tat e",
            f"IOException: {LONG}",
        ),
        (
            f"[PATH_NOT_FOUND] Path does not exist: {LONG}. SQLSTATE: 42K03\n'Project",
            f"[PATH_NOT_FOUND] Path does not exist: {LONG}. SQLSTATE: 42K03",
        ),
        (
            "An error occurred while calling o12.save.\n: org.apache.spark.SparkException: no room left\n\tat a.B",
            "org.apache.spark.SparkException: no room left",
        ),
        (
            (
                "\n  An exception was thrown from the Python worker. Please see the stack trace below.\nTraceback (most recent call last):\n"
                '  File "steps.py", line 3, in clean\n    raise ValueError(text)\nValueError: 7 is no airport\n\nJVM stacktrace:\norg.apache'
            ),
            "ValueError: 7 is no airport",
        ),
        (
            (
                "Job aborted\nCaused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
                "  File \"steps.py\", line 3, in clean\nKeyError: 'id'\n\n\tat org.apache"
            ),
            "KeyError: 'id'",
        ),
        ("", "RuntimeError"),
    ],
    ids=["java", "analysis", "py4j", "python", "python in java", "nothing"],
)
def test_the_cause_of_an_error_of_spark_is_told_whole(text: str, told: str) -> None:
    assert root_cause(RuntimeError(text)) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            S3A,
            (
                "s3://bucket/t/_delta_log: not allowed to list, read or write (HTTP 403: The access key ID you provided does not exist in our"
                " records). Check key, secret and policy, of its connection in platform.yaml or of the AWS_* variables"
            ),
        ),
        (
            NO_BUCKET,
            (
                "s3://no-such-bucket/a.json: expected a bucket, found none (HTTP 404: The specified bucket does not exist). Create it, or correct"
                " the name"
            ),
        ),
        (
            SILENT,
            (
                "s3://bucket/in/a.json: no usable answer (Unable to execute HTTP request: Connect to 127.0.0.1:1 failed: Connection refused)."
                " Check the endpoint and that the store runs, or try again later"
            ),
        ),
    ],
    ids=["key", "bucket", "down"],
)
def test_what_spark_says_of_a_store_names_place_cause_and_remedy(text: str, told: str) -> None:
    assert root_cause(RuntimeError(text)) == told


def test_a_file_is_not_to_blame_where_its_store_does_not_answer() -> None:
    assert find_bad_file(RuntimeError(SILENT), ["a.json"]) is None
    truncated = (
        SILENT.partition("Caused by")[0] + "Caused by: java.io.EOFException: Unexpected end of input stream"
    )
    assert find_bad_file(RuntimeError(truncated), ["a.json"]) is not None


@pytest.mark.parametrize(
    ("show", "told"),
    [
        (None, "line 1: not 1, 'v1'; line 2: not 2, 'v2'; line 3: not 3, 'v3'; 4 bad records in all"),
        (True, "line 1: not 1 in 't1'; line 2: not 2 in 't2'; line 3: not 3 in 't3'; 4 bad records in all"),
        (False, "line 1: not 1; line 2: not 2; line 3: not 3; 4 bad records in all"),
    ],
)
def test_the_first_bad_records_are_named_and_all_are_counted(show: bool | None, told: str) -> None:
    records = [BadRecord(f"t{line}", f"not {line}", line, f"v{line}") for line in range(1, 5)]
    bad = bad_records_error("a", records, show=show, other_paths=["b", "c", "d", "e"])
    assert bad.why == told
    assert bad.message.endswith("Bad records are also in b, c, d and 1 more.")


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        (
            (
                "org.apache.spark.SparkRuntimeException: [CANNOT_PARSE_JSON_FIELD] Cannot parse the field name 'id' and the value Ann's 'x' of the JSON token"
                ' type VALUE_STRING to target Spark data type "BIGINT".'
            ),
            (
                "[CANNOT_PARSE_JSON_FIELD] Cannot parse the field name 'id' and a value of the JSON token type VALUE_STRING to target"
                ' Spark data type "BIGINT".'
            ),
        ),
        (
            'java.lang.NumberFormatException: For input string: "Ann"',
            "For input string: …",
        ),
        (
            "org.apache.spark.SparkRuntimeException: [MALFORMED_CSV_RECORD] Malformed CSV record: Ann,1",
            "[MALFORMED_CSV_RECORD] Malformed CSV record: …",
        ),
    ],
)
def test_words_of_spark_never_quote_a_value(cause: str, why: str) -> None:
    error = Exception(
        f"[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a.csv. SQLSTATE: KD001\n\nCaused by: {cause}"
    )
    bad = find_bad_file(error, ["a.csv"])
    assert bad is not None
    assert bad.why == f"cannot be read: {why}"


def test_a_header_that_names_a_column_twice_in_any_case_says_so() -> None:
    why = bad_header_error("a.csv", ["id0", "ID1", "text"], ["id", "ID", "text"]).why
    assert why.endswith("(id, ID: a column name occurs twice; rename one of the columns)")
    first = bad_header_error("a.csv", (), ["id", "ID"]).why
    assert first.startswith("expected a header that names each column once, found id,ID (id, ID: ")
    assert bad_header_error("a.csv", ["id", "text"], ["text", "id"]).why.endswith("(another order)")


@pytest.mark.parametrize(
    ("expected", "found", "separator"),
    [
        (["id", "text"], ["id;text"], ";"),
        (["id", "text"], ["ID\ttext\tmore"], "\\t"),
        (["id", "text"], ["a|b"], "|"),
        (["id", "text"], ['"id",text'], ","),
        (["id", "net, gross", "qty"], ["id;net", " gross;qty"], ";"),
        ((), ["id;text"], ";"),
        (["id", "text"], ["id", "b;c"], None),
        (["id", "text"], ["id"], None),
        (["id;text"], ["a;b"], None),
        ((), ["id", "id"], None),
    ],
)
def test_a_header_with_another_separator_names_the_option_that_reads_it(
    expected: list[str], found: list[str], separator: str | None
) -> None:
    message = bad_header_error("a.csv", expected, found, may_merge=True).message
    option = f'options: {{sep: "{separator}"}}'
    assert ("seems to be separated by" in message) == (separator is not None)
    assert separator is None or message.count(f"`{option}` below `source`") == 2
    assert separator is None or "schema_mode" not in message


def test_a_header_with_other_columns_names_the_schema_mode_that_takes_them() -> None:
    known = ["id", "text"]
    taking = (
        "accept columns that come and go with `schema_mode: merge` below `target` (docs/reference/schemas.md)"
    )
    assert taking in bad_header_error("a.csv", known, ["id", "text", "deleted"], may_merge=True).message
    assert taking in bad_header_error("a.csv", known, ["id"], may_merge=True).message
    for found in (["text", "id"], ["id", "text", "TEXT"], ["id;text"]):
        assert taking not in bad_header_error("a.csv", known, found, may_merge=True).message
    assert taking not in bad_header_error("a.csv", known, ["id"]).message


def test_a_dataflow_that_may_not_rescue_values_is_not_told_to() -> None:
    value = ("a.parquet", "n", "int", "double", "5.5")
    assert "schema_mode: rescue" in inexact_value_error(*value).message
    assert "schema_mode" not in inexact_value_error(*value, may_rescue=False).message


@pytest.mark.parametrize(
    ("caused", "words"),
    [
        ("java.io.IOException: Invalid sync!", "a block does not end with the file's sync marker: it is damaged"),
        ("java.io.IOException: Block read partially, the data may be corrupt", "a block has more records than its header says: it is damaged"),
        ("a.b.ParquetDecodingException: could not verify page integrity, CRC checksum verification failed", "a page does not match its checksum: it is damaged"),
        ("shaded.TProtocolException: Required field 'x' was not found! Struct: org.a.B$C@15b5", "a page is damaged"),
        ("a.IncompatibleSchemaException: Cannot convert Avro type to SQL", "Cannot convert Avro type to SQL"),
        ("com.univocity.parsers.common.TextParsingException: Length of parsed input (6) exceeds the maximum number of characters defined in your parser settings (5).\nCaused by: java.lang.ArrayIndexOutOfBoundsException: Index 5 out of bounds for length 5", "a value is longer than maxCharsPerColumn of source.options allows: raise it"),
        ("com.univocity.parsers.common.TextParsingException: java.lang.ArrayIndexOutOfBoundsException - Index 1 out of bounds for length 1\nCaused by: java.lang.ArrayIndexOutOfBoundsException: Index 1 out of bounds for length 1", "a line has more columns than maxColumns of source.options allows: raise it"),
        ("c.f.j.StreamConstraintsException: Number value length (5) exceeds the maximum allowed (2, from `StreamReadConstraints.getMaxNumberLength()`)", "a number is longer than maxNumLen of source.options allows: raise it"),
        ("java.lang.RuntimeException: s3a://bucket/in/a.parquet is not what it was", "it is not what it was"),
    ],
)  # fmt: skip
def test_why_a_file_does_not_read_is_told_without_a_class_or_an_address(caused: str, words: str) -> None:
    assert explain_unreadable(Exception(f"Job aborted\nCaused by: {caused}\n\tat c.D")) == words
    silent = (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a/b.avro.  SQLSTATE: KD001"
    )
    in_this_process = f"Job aborted\nCaused by: org.apache.spark.SparkException: {silent}\n\tat c.D"
    for text in (silent, in_this_process):
        assert explain_unreadable(Exception(text)) == "it is damaged, or ends too early"


def test_of_a_header_of_many_columns_the_first_ones_are_shown() -> None:
    many = [f"c{number}" for number in range(1_300)]
    why = bad_header_error("a.csv", (), [*many, "c0"]).why
    assert why == (
        "expected a header that names each column once, found c0,c1,c2,c3,c4,c5,c6,c7,c8,c9 and 1,291 more"
        " (c0: a column name occurs twice; rename one of the columns)"
    )
