from __future__ import annotations

import pickle

import pytest

from partitions.errors import ConfigurationError
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.sources.jdbc.failures import error_of, source_error
from resources.spark.engine import SparkEngine
from resources.spark_runtime import (
    COMMITTERS_PACKAGE,
    DELTA_PACKAGE,
    HADOOP_AWS_PACKAGE,
    MARIADB_PACKAGE,
    POSTGRESQL_PACKAGE,
)

SECRET = "sesame-open"


@pytest.mark.parametrize(
    ("text", "url", "shown", "system"),
    [
        ("jdbc:postgresql://h/db", "jdbc:postgresql://h/db", "postgresql://h/db", "postgresql"),
        (
            "jdbc:postgresql://one:1,two:2/db?ssl=true&targetServerType=primary",
            "jdbc:postgresql://one:1,two:2/db?ssl=true&targetServerType=primary",
            "postgresql://one:1,two:2/db",
            "postgresql",
        ),
        ("jdbc:mariadb://h:3306/db", "jdbc:mysql://h:3306/db?permitMysqlScheme", "mariadb://h:3306/db", "mariadb"),
        ("jdbc:mysql://h/db?a=b", "jdbc:mysql://h/db?a=b&permitMysqlScheme", "mysql://h/db", "mariadb"),
        ("jdbc:mariadb:replication://h/db", "jdbc:mysql:replication://h/db?permitMysqlScheme", "mariadb://h/db", "mariadb"),
    ],
)  # fmt: skip
def test_an_address_is_the_drivers(text: str, url: str, shown: str, system: str) -> None:
    found = JdbcConnection.parse(text)
    assert (found.url, str(found), found.system) == (url, shown, system)


MARIADB = "jdbc:mariadb://h/db?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            (text, "expected jdbc:postgresql://host")
            for text in ("", "postgresql://h/db", "jdbc:oracle:thin:@h", f"jdbc:postgresql://u:{SECRET}@h/db", "jdbc:postgresql:db", "jdbc:postgresql://h")
        ),
        *(
            (f"{MARIADB}{name}={SECRET}", f"found the parameter {name}$")
            for name in ("secretKey", "authToken", "sslkeypasswd", "keyStorePasswort_password")
        ),
        (f"{MARIADB}sslMode=preferred", "expected sslMode disable, trust, verify-ca or verify-full"),
        (f"{MARIADB}sslMode=verify-ca&trustStore=/x.jks&trustStorePassword={SECRET}", "expected serverSslCert, a PEM"),
        (f"{MARIADB}useSSL=true&trustCertificateKeyStoreUrl=file:///x", "found trustcertificatekeystoreurl without it"),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_is_refused_and_not_shown(text: str, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected) as refused:
        JdbcConnection.parse(text)
    assert SECRET not in refused.value.message


@pytest.mark.parametrize(("system", "usual"), [("postgresql", "3600"), ("mariadb", "3600000")])
def test_silence_has_an_end_which_the_address_may_set(system: str, usual: str) -> None:
    assert f"&socketTimeout={usual}&" in JdbcConnection.parse(f"jdbc:{system}://h/db").options["url"]
    url = JdbcConnection.parse(f"jdbc:{system}://h/db?a=b&socketTimeout=7").options["url"]
    assert [each for each in url.split("&") if "socketTimeout" in each] == ["socketTimeout=7"]


def test_secrets_of_an_address_are_options_and_are_shown_nowhere() -> None:
    url = f"jdbc:postgresql://h/db?user=me&password={SECRET}%2B1&sslpassword=other-one&ssl=true"
    found = JdbcConnection.parse(url)
    assert found.url == "jdbc:postgresql://h/db?ssl=true"
    assert (
        found.options.items() >= {"user": "me", "password": f"{SECRET}+1", "sslpassword": "other-one"}.items()
    )
    assert SECRET not in repr(found) + str(found)
    assert found.hide(f"{SECRET}+1 and other-one") == "*** and ***"
    assert pickle.loads(pickle.dumps(found)) == found


def test_user_and_password_of_the_settings_go_before_those_of_the_address() -> None:
    found = JdbcConnection.parse(f"jdbc:postgresql://h/db?user=a&password={SECRET}", "b", "another-one")
    assert (found.options["user"], found.options["password"]) == ("b", "another-one")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("jdbc:postgresql://h/db", {"host": "h", "port": "5432", "dbname": "db"}),
        ("jdbc:postgresql://a:1,[::1]:2/d%20b", {"host": "a,::1", "port": "1,2", "dbname": "d b"}),
        ("jdbc:postgresql:///db", {"host": "localhost", "port": "5432", "dbname": "db"}),
        ("jdbc:postgresql://h/db?ssl=true&currentSchema=s", {"host": "h", "port": "5432", "dbname": "db", "sslmode": "require", "options": "-c search_path=s"}),
        (
            "jdbc:postgresql://h/db?options=-c%20search_path=a&currentSchema=b+c%2C%22D%22",
            {
                "host": "h",
                "port": "5432",
                "dbname": "db",
                "options": '-c search_path=a -c search_path=b\\ c,"D"',
            },
        ),
        ("jdbc:postgresql://h/db?sslmode=verify-full", {"host": "h", "port": "5432", "dbname": "db", "sslmode": "verify-full"}),
    ],
)  # fmt: skip
def test_an_address_has_libpqs_words(url: str, expected: dict[str, str]) -> None:
    assert JdbcConnection.parse(url).libpq == expected


def test_a_driver_is_there_where_a_database_of_its_kind_is_read() -> None:
    one, other = JdbcConnection.parse("jdbc:postgresql://h/db"), JdbcConnection.parse("jdbc:mariadb://h/db")
    engine = SparkEngine()
    assert engine.with_places([Place("/x")]).packages == (DELTA_PACKAGE,)
    assert engine.with_places([Place("/x"), one, one]).packages == (DELTA_PACKAGE, POSTGRESQL_PACKAGE)
    assert engine.with_places([one, other, Place("s3://b")]).packages == (
        DELTA_PACKAGE,
        HADOOP_AWS_PACKAGE,
        COMMITTERS_PACKAGE,
        MARIADB_PACKAGE,
        POSTGRESQL_PACKAGE,
    )
    assert engine.with_places([Place("/x"), one]).places == (Place("/x"),)


@pytest.mark.parametrize(
    ("said", "transient"),
    [
        ("FATAL: the database system is starting up", True),
        ("FATAL: sorry, too many clients already", True),
        ("FATAL: terminating connection due to administrator command", True),
        ("An I/O error occurred while sending to the backend.", True),
        ("The connection attempt failed.", True),
        ("ERROR: deadlock detected", True),
        ("Deadlock found when trying to get lock; try restarting transaction", True),
        ("ERROR: canceling statement due to statement timeout", True),
        ("(conn=5) Query execution was interrupted (max_statement_time exceeded)", True),
        ("Lock wait timeout exceeded; try restarting transaction", True),
        ("FATAL: the database system is shutting down", True),
        ("(conn=5) Server shutdown in progress", True),
        ("(conn=5) Connection was killed", True),
        ("User 'me' has exceeded the 'max_user_connections' resource (current value: 1)", True),
        ('FATAL: too many connections for role "me"', True),
        ("Lost connection to MySQL server during query", True),
        ("consuming input failed: server closed the connection unexpectedly", True),
        ('connection failed: connection to server at "h", port 5432 failed: FATAL:  the database system is starting up', True),
        ("ERROR: canceling statement due to conflict with recovery", True),
        ('ERROR: relation "timeouts" does not exist', False),
        ("(conn=5) Table 'shop.deadlock' doesn't exist", False),
        ('column "x" does not exist\nLINE 1: SELECT x FROM timeout', False),
        ("You have an error in your SQL syntax; check the manual to use near 'timeout\n'deadlock'' at line 2", False),
        ('connection failed: connection to server at "h", port 5432 failed: FATAL:  database "x" does not exist', False),
        ("ERROR: permission denied for table shutdowns", False),
        ("Socket fail to connect to host:address=(host=h)(port=3306). Connection refused", True),
        ('FATAL: password authentication failed for user "me"', False),
        ("(conn=5) Access denied for user 'me'@'localhost' (using password: YES)", False),
        ('ERROR: permission denied for table "t"', False),
        ('ERROR: column "password" does not exist', False),
    ],
)  # fmt: skip
def test_only_what_may_pass_by_itself_is_tried_again(said: str, transient: bool) -> None:
    error = error_of(said, JdbcConnection.parse("jdbc:postgresql://h/db"))
    assert error.transient == transient
    assert said.rstrip(".").replace("\n", "; ") in error.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "An error occurred while calling o1.load.\n: org.postgresql.util.PSQLException: FATAL: no\n  Detail: x\n  Position: 7",
            "FATAL: no; Detail: x",
        ),
        ("(org.postgresql.util.PSQLException) FATAL: no\n\nJVM stacktrace:", "FATAL: no"),
        (
            "Job aborted: Lost task 0.0 (executor driver): java.sql.SQLSyntaxErrorException: (conn=5) Table 'd.t' doesn't exist\n\tat org.x",
            "(conn=5) Table 'd.t' doesn't exist",
        ),
        (
            (
                "[JDBC_EXTERNAL_ENGINE_SYNTAX_ERROR.DURING_OUTPUT_SCHEMA_RESOLUTION] JDBC external engine syntax error. The error was caused by the"
                ' query SELECT * FROM (\nselect\n) SPARK_GEN_SUBQ_1 WHERE 1=0. ERROR: relation "t" does not exist\n  Position: 5'
            ),
            'ERROR: relation "t" does not exist',
        ),
    ],
)
def test_the_databases_words_are_found_in_sparks_error(text: str, said: str) -> None:
    error = source_error(RuntimeError(text), JdbcConnection.parse("jdbc:postgresql://h/db"))
    assert f"found: {said}." in str(error)


def test_a_secret_in_what_the_driver_says_is_hidden() -> None:
    connection = JdbcConnection.parse("jdbc:mariadb://h/db", "me", SECRET)
    error = source_error(RuntimeError(f"(java.sql.SQLException) bad {SECRET}"), connection)
    assert "found: bad ***." in str(error)


def test_what_is_not_the_databases_is_nobodys() -> None:
    assert source_error(ValueError("a.b.SQLness"), JdbcConnection.parse("jdbc:postgresql://h/db")) is None


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            'connection to server at "h", port 1 failed: Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?\n',
            'found: connection to server at "h", port 1 failed: Connection refused. Check',
        ),
        (
            'syntax error at or near "FRM"\nLINE 1: SELECT * FRM t\n                 ^\n',
            'found: syntax error at or near "FRM"; LINE 1: SELECT * FRM t. Correct',
        ),
    ],
)
def test_what_is_quoted_of_a_database_reads_as_a_sentence(said: str, shown: str) -> None:
    assert shown in error_of(said, JdbcConnection.parse("jdbc:postgresql://h/db")).message


@pytest.mark.parametrize(
    ("system", "written", "known"),
    [
        ("postgresql", "sslPassword", "sslpassword"),
        ("postgresql", "Password", "password"),
        ("mariadb", "trustStorePassword", "trustStorePassword"),
        ("mariadb", "TRUSTSTOREPASSWORD", "trustStorePassword"),
        ("mysql", "keystorepassword", "keyStorePassword"),
        ("mariadb", "keyPassword", "keyPassword"),
    ],
)
def test_an_addresss_secret_reaches_the_driver_spelt_its_way(system: str, written: str, known: str) -> None:
    found = JdbcConnection.parse(f"jdbc:{system}://h/db?a=b&{written}={SECRET}&ApplicationName=x")
    assert found.options[known] == SECRET
    assert SECRET not in found.options["url"] + repr(found)
    assert "ApplicationName=x" in found.options["url"]
    assert found.hide(f"a {SECRET}") == "a ***"


def test_parameters_that_are_no_secrets_stay_in_the_address() -> None:
    text = "passwordCharacterEncoding=UTF-8&disconnectOnExpiredPasswords=false"
    assert text in JdbcConnection.parse(f"jdbc:mariadb://h/db?{text}").options["url"]


@pytest.mark.parametrize(
    ("parameters", "tls"),
    [
        ("a=b", (None, None)),
        ("sslMode=disable", (None, None)),
        ("sslmode=TRUST", ("trust", None)),
        ("sslMode=VERIFY_CA&SERVERSSLCERT=/c", ("verify-ca", "/c")),
        ("sslMode=verify_identity&serverSslCert=/c", ("verify-full", "/c")),
        ("useSSL=true", ("verify-full", None)),
        ("useSsl", ("verify-full", None)),
        ("useSsl=false", (None, None)),
        ("useSsl=true&trustServerCertificate=true", ("trust", None)),
        ("useSsl=true&disableSslHostnameVerification=true", ("verify-ca", None)),
    ],
)
def test_questions_verify_a_server_as_drivers_do(parameters: str, tls: tuple[str | None, str | None]) -> None:
    assert JdbcConnection.parse(f"jdbc:mariadb://h/db?{parameters}").mysql_tls == tls
