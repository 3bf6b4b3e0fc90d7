"""What every user interface calls: one function per verb, with typed requests and results.

    requests        which repository, what to build, what to publish
    building        build, plan, status, verify, replay
    reading         open, sql, callers, callees, refs, definition, entry_points, why, publish
    history         builds, diff, changes, rollback, gc
    diagnosis       doctor

The package `codeanatomy` offers the same functions. They print nothing, and fail with an error of `codeanatomy.errors`.
A function imports the room it calls when it is called, so that no verb pays for the start-up of another: only `build`,
`verify`, `replay` and `doctor(deep=True)` load Spark.
"""
