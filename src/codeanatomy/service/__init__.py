"""The engine process, which keeps Spark and what it knows of states between commands, and what uses it.

    place       where the engine of a user is found
    protocol    JSON objects, one per line, over a private socket
    client      run a verb through the engine if there is one, else in this process
    engine      start, stop, status
    server      the engine process
    watch       update on save

Commands must work without an engine, with the same results. What a client uses imports little: no Spark, no Arrow.
"""
