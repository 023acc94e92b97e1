"""Runs DynamoDB Local inside this process, on the loopback address and a free port.

tools.engines.dynamodb_local starts it as `python dynamodb_server.py JVM_LIBRARY JAR`. It prints
`listening on PORT` when it is ready, and serves until its standard input closes. So it also ends if
the process that started it is killed.

The launcher in the jar has no option for the address and listens on all interfaces. So the Java
virtual machine runs in this process, which sets the address of the server object before its start.
"""

import sys

import jpype

LOOPBACK = "127.0.0.1"


def main() -> None:
    """Serve until standard input ends."""
    jvm_library, jar = sys.argv[1:]
    jpype.startJVM(
        jvm_library,
        "-Xmx512m",
        "--enable-native-access=ALL-UNNAMED",  # Java 24 and newer warn without it
        classpath=[jar],
    )
    package = "software.amazon.dynamodb.services.local.main"
    runner = jpype.JClass(f"{package}.ServerRunner")
    # The parser requires a port, but the connector below uses port 0.
    server = runner.createServerFromCommandLineArgs(
        ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", "8000"]
    )
    field = server.getClass().getDeclaredField("server")
    field.setAccessible(True)
    (connector,) = field.get(server).getConnectors()
    connector.setHost(LOOPBACK)
    connector.setPort(0)  # the kernel selects a free port, so two servers never use the same one
    server.start()
    print(f"listening on {connector.getLocalPort()}", flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
