"""The one line that is told of an error with a stack trace: the innermost cause that says something."""

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException, UnknownException

from codeanatomy.engine.causes import cause_of, text_of

NO_PYTHON = """\
An error occurred while calling o70.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 0.0 (TID 0) (192.0.2.2 executor driver): java.io.IOException: Cannot run program \
"/opt/venv/bin/python3": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: error=2, No such file or directory
\tat java.base/java.lang.ProcessImpl.forkAndExec(Native Method)
\t... 28 more

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$2(DAGScheduler.scala:2935)
Caused by: java.io.IOException: Cannot run program "/opt/venv/bin/python3": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
\t... 1 more
Caused by: java.io.IOException: error=2, No such file or directory
\tat java.base/java.lang.ProcessImpl.forkAndExec(Native Method)
\t... 28 more
"""

NO_FILE_SYSTEM = """\
An error occurred while calling o128.parquet.
: org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"
\tat org.apache.hadoop.fs.FileSystem.getFileSystemClass(FileSystem.java:3581)
"""

LOST_TASK = """\
Job aborted due to stage failure: Task 3 in stage 1.0 failed 4 times, most recent failure: Lost task 3.3 in stage 1.0 \
(TID 9) (10.0.0.7 executor 2): org.apache.spark.SparkException: Connection to /10.0.0.8 closed
\tat org.apache.spark.network.client.TransportClient.channelInactive(TransportClient.java:98)

Driver stacktrace:
"""

NOTHING_SAID = """\
An error occurred while calling o9.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: org.apache.spark.SparkException: the rows are too many
\tat org.apache.spark.sql.Rows.count(Rows.scala:1)
Caused by: java.util.concurrent.TimeoutException
\tat java.base/java.util.concurrent.FutureTask.get(FutureTask.java:204)
"""

PYTHON = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/src/extractor.py", line 17, in extract
    raise KeyError(name)
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/src/extractor.py", line 19, in extract
    raise ValueError(name) from None
ValueError: x is not a fact
and a second line
 SQLSTATE: 38000
"""

ARROWS = """\
Operation not supported
          \x1b[31m↳\x1b[0m no credentials found in chain. Attempted:
  StorageOptions
           \x1b[31m↳\x1b[0m access key not in StorageOptions
  Environment
            \x1b[31m↳\x1b[0m environment variable not set
"""

ARROWS_OF_A_WORKER = f"""\
An error occurred while calling o9.collectToPython.
: org.apache.spark.api.python.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/src/parts.py", line 17, in write
OSError: {ARROWS}
\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (ARROWS, "environment variable not set"),
        (ARROWS_OF_A_WORKER, "environment variable not set"),
        (NO_PYTHON, 'Cannot run program "/opt/venv/bin/python3": error=2, No such file or directory'),
        (NO_FILE_SYSTEM, 'No FileSystem for scheme "s3"'),
        (LOST_TASK, "Connection to /10.0.0.8 closed"),
        (NOTHING_SAID, "the rows are too many"),
        (PYTHON, "ValueError: x is not a fact"),
        ("java.lang.RuntimeException: java.lang.ClassNotFoundException: Class a.B not found", "Class a.B not found"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x.\n\nJVM stacktrace:\norg.apache.spark.sql.AnalysisException\n"
         "\tat org.apache.spark.A.b(A.scala:1)", "[PATH_NOT_FOUND] Path does not exist: file:/x."),
        ("An error occurred while calling o1.x.\n: java.lang.NullPointerException\n\tat a.B.c(B.java:1)",
         "java.lang.NullPointerException"),
        ("one line", "one line"),
        ("\n  first: of two\nsecond", "first: of two"),
        ("", "RuntimeError"),
    ],
)  # fmt: skip
def test_the_cause_is_one_line(text, cause):
    assert cause_of(RuntimeError(text)) == cause


def test_an_error_of_spark_connect_keeps_its_trace_beside_its_text():
    trace = (
        "org.apache.spark.SparkException\n\tat a.B.c(B.java:1)\nCaused by: java.io.IOException: corrupted file: no end"
    )
    error = SparkConnectGrpcException("[FAILED_READ_FILE] Encountered error while reading x", server_stacktrace=trace)
    assert cause_of(error) == "corrupted file: no end"
    assert cause_of(RuntimeError(text_of(error))) == "corrupted file: no end"


def test_an_error_of_spark_connect_names_its_class_in_brackets():
    error = UnknownException(
        'No FileSystem for scheme "s3"', reason="org.apache.hadoop.fs.UnsupportedFileSystemException"
    )
    assert cause_of(error) == 'No FileSystem for scheme "s3"'


def test_a_real_error_names_what_is_missing(spark):
    with pytest.raises(Exception, match="parquet") as caught:
        spark.read.parquet("s3://bucket/table")
    assert cause_of(caught.value) == 'No FileSystem for scheme "s3"'


def test_a_worker_without_its_python_is_named(spark, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/no/such/python3")
    with pytest.raises(Exception, match="error occurred") as caught:
        spark.range(1).mapInArrow(lambda batches: batches, "id long").collect()
    assert cause_of(caught.value) == 'Cannot run program "/no/such/python3": error=2, No such file or directory'
