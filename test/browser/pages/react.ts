import { Activity, createElement, StrictMode, useEffect } from 'react'
import { createRoot, hydrateRoot, type Root } from 'react-dom/client'
import { renderToString } from 'react-dom/server'
import { type RecordSource, type StreamView, useStream } from '../../../adapters/react/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { type Engine, HeadwaterError, open, type ReadQuery, type TextRecord } from '../../../src/index.ts'

interface Props {
  readonly stream: RecordSource<TextRecord> | undefined
  readonly query?: ReadQuery
  readonly isHidden?: boolean
}

/** What a component showed: the bodies of the records, the status and the code of the error. */
interface Shown {
  readonly bodies: readonly string[]
  readonly status: string
  readonly code?: string
}

function shown({ records, status, error }: StreamView<TextRecord>): Shown {
  const bodies = records.map(({ body }) => body)
  return { bodies, status, ...(error && { code: HeadwaterError.is(error) ? error.code : String(error) }) }
}

/** A component that reads a stream, in StrictMode, and everything that it rendered. */
class Mounted {
  readonly renders: Shown[] = []
  readonly warnings: string[] = []
  #root: Root
  #onRender = () => {}

  constructor(props: Props, html?: string) {
    const container = document.createElement('div')
    const onRecoverableError = (error: unknown) => void this.warnings.push(String(error))
    if (html === undefined) {
      this.#root = createRoot(container, { onRecoverableError })
      this.update(props)
    } else {
      container.innerHTML = html
      this.#root = hydrateRoot(
        container,
        elementOf(props, (view) => this.#rendered(view)),
        { onRecoverableError },
      )
    }
  }

  update(props: Props): void {
    this.#root.render(elementOf(props, (view) => this.#rendered(view)))
  }

  unmount(): void {
    this.#root.unmount()
  }

  get last(): Shown | undefined {
    return this.renders.at(-1)
  }

  /** Resolves after the first commit for which the condition holds. */
  async until(condition: (last: Shown) => boolean): Promise<Shown> {
    for (;;) {
      if (this.last !== undefined && condition(this.last)) return this.last
      await new Promise<void>((resolve) => {
        this.#onRender = resolve
      })
    }
  }

  #rendered(view: StreamView<TextRecord>): void {
    const last = shown(view)
    if (JSON.stringify(last) !== JSON.stringify(this.last)) this.renders.push(last)
    this.#onRender()
  }
}

type OnRender = (view: StreamView<TextRecord>) => void

function elementOf({ isHidden = false, ...props }: Props, onRender: OnRender) {
  const children = createElement(Reader, { ...props, onRender })
  return createElement(
    StrictMode,
    null,
    createElement(Activity, { mode: isHidden ? 'hidden' : 'visible', children }),
  )
}

function Reader(props: Props & { readonly onRender: OnRender }) {
  // Created again with every render, like in components.
  const query = { seqNum: 0, ...props.query }
  const view = useStream(props.stream, query)
  useEffect(() => props.onRender(view))
  return createElement('p', null, `${view.status} ${view.records.length}`)
}

/** Counts the sessions that are opened on a stream. */
function counted(stream: RecordSource<TextRecord>) {
  const counts = { sessions: 0 }
  const source: RecordSource<TextRecord> = {
    follow(query, options) {
      counts.sessions++
      return stream.follow(query, options)
    },
  }
  return { source, counts }
}

async function openChat(...bodies: readonly string[]) {
  const hw = await open({ storage: memory() })
  const stream = hw.basin('my-app').stream('chat')
  if (bodies.length > 0) await stream.append(bodies)
  return { hw, stream }
}

/** The number of sessions that stay open. */
async function openReads(hw: Engine): Promise<number> {
  for (let turn = 0; turn < 100 && hw.stats().openReads > 0; turn++) {
    await new Promise((resolve) => setTimeout(resolve))
  }
  return hw.stats().openReads
}

const isLive = ({ status }: Shown) => status === 'live'
const shows = (body: string) => (last: Shown) => last.bodies.at(-1) === body

export async function followAndUnmount() {
  const { hw, stream } = await openChat('a', 'b')
  const { source, counts } = counted(stream)
  const mounted = new Mounted({ stream: source })
  await mounted.until(isLive)
  await stream.append('c')
  await mounted.until(shows('c'))
  const whileMounted = hw.stats().openReads
  mounted.unmount()
  const result = { renders: mounted.renders, ...counts, whileMounted, afterwards: await openReads(hw) }
  await hw.close()
  return result
}

/** Renders again and again, with equal handles and queries. */
export async function renderAgain() {
  const { hw, stream } = await openChat('a')
  const handle = () => hw.basin('my-app').stream('chat')
  let sessions = 0
  const original = stream.constructor.prototype.follow
  stream.constructor.prototype.follow = function (...args: unknown[]) {
    sessions++
    return original.apply(this, args)
  }
  const mounted = new Mounted({ stream: handle() })
  await mounted.until(isLive)
  for (let render = 0; render < 10; render++) {
    mounted.update({ stream: handle(), query: {} })
    await stream.append(`${render}`)
    await mounted.until(shows(`${render}`))
  }
  const unchanged = sessions
  mounted.update({ stream: handle(), query: { seqNum: 9 } })
  const { bodies } = await mounted.until(({ bodies }) => bodies.length === 2)
  mounted.unmount()
  stream.constructor.prototype.follow = original
  await hw.close()
  return { unchanged, changed: sessions, bodies }
}

/** Mounts with an engine, then shows a stream of the same name in another one. */
export async function changeStream() {
  const first = await openChat('first')
  const second = await openChat('second')
  const mounted = new Mounted({ stream: undefined })
  mounted.update({ stream: first.stream })
  await mounted.until(isLive)
  mounted.update({ stream: second.stream })
  await mounted.until(shows('second'))
  const reads = [await openReads(first.hw), second.hw.stats().openReads]
  await first.stream.append('late')
  await second.stream.append('more')
  await mounted.until(shows('more'))
  mounted.update({ stream: undefined })
  await mounted.until(({ status }) => status === 'loading')
  mounted.unmount()
  reads.push(await openReads(second.hw))
  await Promise.all([first.hw.close(), second.hw.close()])
  return { renders: mounted.renders, reads }
}

/** A bounded session; a stream that may not be created; an engine that closes. */
export async function endings() {
  const { hw, stream } = await openChat('a', 'b', 'c')
  const bounded = new Mounted({ stream, query: { count: 2 } })
  const ended = await bounded.until(({ status }) => status === 'ended')
  const strict = await open({ storage: memory(), autoCreate: false })
  const missing = new Mounted({ stream: strict.basin('my-app').stream('chat') })
  const failed = await missing.until(({ status }) => status === 'error')
  const misspelt = new Mounted({ stream, query: { cuont: 2 } as ReadQuery })
  const invalid = await misspelt.until(({ status }) => status === 'error')
  const following = new Mounted({ stream })
  await following.until(isLive)
  await Promise.all([hw.close(), strict.close()])
  const closed = await following.until(({ status }) => status === 'error')
  for (const mounted of [bounded, missing, misspelt, following]) mounted.unmount()
  return { ended, failed, invalid, closed }
}

/** Hides a component and shows it again. */
export async function hide() {
  const { hw, stream } = await openChat('a')
  const mounted = new Mounted({ stream })
  await mounted.until(isLive)
  mounted.update({ stream, isHidden: true })
  const whileHidden = await openReads(hw)
  await stream.append('b')
  mounted.update({ stream })
  await mounted.until(shows('b'))
  mounted.unmount()
  await hw.close()
  return { whileHidden, renders: mounted.renders }
}

export async function hydrate() {
  const { hw, stream } = await openChat('a')
  const html = renderToString(elementOf({ stream }, () => {}))
  const onServer = hw.stats().openReads
  const mounted = new Mounted({ stream }, html)
  await mounted.until(isLive)
  mounted.unmount()
  await hw.close()
  return { html, onServer, renders: mounted.renders, warnings: mounted.warnings }
}
