using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "disk", disk = (path = "objects", writable = true)),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-01-01",
  compatibilityFlags = ["enable_request_signal"],
  durableObjectNamespaces = [
    (className = "Conformance", uniqueKey = "conformance", enableSql = true),
    (className = "Streams", uniqueKey = "streams", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [
    (name = "CONFORMANCE", durableObjectNamespace = "Conformance"),
    (name = "STREAMS", durableObjectNamespace = "Streams"),
  ],
);
