"""A server that speaks as PostgreSQL does, and then answers something else.

Prints its port. To a session whose application_name is `evil` it refuses the connection with bytes
that would act on a terminal; to any other it answers each question with no row.
"""

import socket
import struct
import threading


def message(kind, body=b""):
    return kind + struct.pack(">I", len(body) + 4) + body


def setting(name, value):
    return message(b"S", name + b"\0" + value + b"\0")


READY = message(b"Z", b"I")
HELLO = (
    message(b"R", struct.pack(">I", 0))
    + setting(b"server_version", b"15.3")
    + setting(b"client_encoding", b"UTF8")
    + setting(b"default_transaction_read_only", b"off")
    + setting(b"in_hot_standby", b"off")
    + message(b"K", struct.pack(">II", 7, 1))
    + READY
)
NO_ROW = message(b"T", struct.pack(">H", 1) + b"c\0" + struct.pack(">IHIhih", 0, 0, 25, -1, -1, 0))
EVIL = message(b"E", b"SFATAL\0C28000\0Mevil \x1b[31m\xff\0\0")


def read(client, length):
    data = b""
    while len(data) < length:
        more = client.recv(length - len(data))
        if not more:
            raise OSError("closed")
        data += more
    return data


def read_message(client):
    return read(client, struct.unpack(">I", read(client, 4))[0] - 4)


def serve(client):
    try:
        if b"evil" in read_message(client):
            client.sendall(EVIL)
            return
        client.sendall(HELLO)
        while True:
            read(client, 1)
            asked = read_message(client)
            rows = NO_ROW if b"SELECT" in asked else b""
            client.sendall(rows + message(b"C", b"SELECT 0\0") + READY)
    except OSError:
        pass
    finally:
        client.close()


server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
