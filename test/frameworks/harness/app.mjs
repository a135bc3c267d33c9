import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { Client } from './client.mjs'

const BASIN = 'checks-basin'
const START_MS_MAX = 180_000
const INTERVAL_MS = 20

/** Killed with this process, whose signals they do not get. */
const running = new Set()
process.on('exit', () => {
  for (const app of running) app.kill()
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))

/** A running app, and the requests that the checks make to it. */
export class App {
  #process
  #ended
  #token
  /** Everything that it printed. */
  output = ''
  /** What it printed to stderr. */
  errors = ''

  /**
   * Starts a command in a directory, with the environment variable `PORT`. `start` is the command and its
   * arguments; `http2` makes all requests over HTTP/2 with prior knowledge; `stats` is the path at which the
   * app itself serves what its engine has open; a `chat` and `answers` have neither a handler at `/streams` nor a
   * token.
   */
  static async start(mode, directory, givenPort) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await App.#startOn(givenPort ?? (await freePort()), mode, directory)
      } catch (error) {
        // Another program may have got the port before the app.
        if (givenPort !== undefined || attempt === 3 || !/EADDRINUSE/.test(error.output)) throw error
      }
    }
  }

  static async #startOn(port, mode, directory) {
    const [command, ...args] = mode.start
    const { env, chat, answers } = mode
    const app = new App(`http://127.0.0.1:${port}`, directory, mode)
    // A process group of its own: package managers and development servers have children.
    app.#process = spawn(command, args, {
      cwd: directory,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1', ...env, PORT: String(port) },
    })
    running.add(app)
    app.#ended = once(app.#process, 'close')
    app.#process.stdout.setEncoding('utf8').on('data', (text) => {
      app.output += text
    })
    app.#process.stderr.setEncoding('utf8').on('data', (text) => {
      app.output += text
      app.errors += text
    })
    try {
      await app.#ready(chat || answers)
    } catch (error) {
      await app.stop()
      throw Object.assign(error, { output: app.output })
    }
    return app
  }

  constructor(url, directory, { http2 = false, stats }) {
    this.url = url
    /** The copy of the app. */
    this.directory = directory
    this.http2 = http2
    this.statsPath = stats
    this.basin = BASIN
    this.client = new Client(url, { http2 })
  }

  get token() {
    return this.#token
  }

  /** A request to the handler. Its path begins at `mount`. */
  request(path, { mount = '/streams', headers, json, ...options } = {}) {
    const response = this.client.request(mount + path, {
      ...options,
      headers: {
        authorization: `Bearer ${this.#token}`,
        'svc-basin': BASIN,
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(json !== undefined && { method: 'POST', body: JSON.stringify(json) }),
    })
    // A check that fails may leave a request behind, which breaks off when the app is stopped.
    response.catch(() => {})
    return response
  }

  /** Appends records with these bodies. */
  append(stream, ...bodies) {
    return this.request(`/v1/streams/${stream}/records`, {
      json: { records: bodies.map((body) => ({ body })) },
    })
  }

  /** Reads the bodies of all records. */
  async bodies(stream) {
    const { records } = await (await this.request(`/v1/streams/${stream}/records?seq_num=0`)).json()
    return records.map(({ body }) => body)
  }

  /** Creates a stream, and returns its name. */
  async createStream(stream) {
    await this.#create('/v1/streams', { stream })
    return stream
  }

  /** What the engine has open. */
  async stats() {
    // A development server that has started another worker prints another address.
    const printed = [...this.output.matchAll(/stats: (http\S+)/g)].at(-1)?.[1]
    const response = await fetch(this.statsPath ? this.url + this.statsPath : printed)
    return await response.json()
  }

  /** Kills it, with its children. */
  kill() {
    running.delete(this)
    try {
      process.kill(-this.#process.pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }

  async stop() {
    this.client.close()
    this.kill()
    await this.#ended
  }

  async #ready(isWithoutToken) {
    const isUp = async () => {
      if (this.#process.exitCode !== null) throw new Error(`the app exited with ${this.#process.exitCode}`)
      const signal = AbortSignal.timeout(START_MS_MAX)
      // The first request opens the engine of an app with a build.
      const path = isWithoutToken ? '/' : (this.statsPath ?? '/streams/v1/basins')
      return await this.client.request(path, { signal }).catch(() => undefined)
    }
    await until('the app to listen', isUp, START_MS_MAX)
    if (isWithoutToken) return
    this.#token = await until('the token', () => /(?:root|access) token: (\S+)/.exec(this.output)?.[1])
    // An app that is started again has it.
    await this.#create('/v1/basins', { basin: BASIN }, [201, 409])
  }

  async #create(path, json, expected = [201]) {
    const response = await this.request(path, { json })
    const text = String(await response.bytes())
    if (!expected.includes(response.status)) throw new Error(`POST ${path}: ${response.status} ${text}`)
  }
}

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}

/** Waits until `condition` returns a truthy value, and resolves to it. */
export async function until(subject, condition, timeoutMs = 120_000) {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${subject}`)
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS))
  }
}
