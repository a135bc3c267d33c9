using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "streams", worker = .worker)],
  sockets = [(name = "http", http = (), service = "streams")],
);

const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "bundle.js")],
  compatibilityDate = "2026-01-01",
  compatibilityFlags = ["enable_request_signal"],
);
