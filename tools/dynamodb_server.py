"""Hosts DynamoDB Local inside this process, on the loopback address and a port of its choosing.

Started by tools.dynamodb_local as `python dynamodb_server.py JVM_LIBRARY JAR`. Prints
`listening on PORT` when ready and serves until its standard input closes, so that it ends with the
process that started it, however that one ends.

The launcher in the jar has no option for the address: it would listen on every interface. So the
virtual machine runs in here, where the server object can be told its address before it starts.
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
    # The port named here is only to satisfy the parser; the connector below gets port 0.
    server = runner.createServerFromCommandLineArgs(
        ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", "8000"]
    )
    field = server.getClass().getDeclaredField("server")
    field.setAccessible(True)
    (connector,) = field.get(server).getConnectors()
    connector.setHost(LOOPBACK)
    connector.setPort(0)  # the kernel chooses, so two servers can never race for one port
    server.start()
    print(f"listening on {connector.getLocalPort()}", flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
