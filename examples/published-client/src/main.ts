import { AppendInput, AppendRecord, S2 } from '@s2-dev/streamstore'
import './style.css'

const list = document.querySelector('ol')!
const form = document.querySelector('form')!
const input = document.querySelector('input')!
const status = document.querySelector('output')!

async function start(): Promise<void> {
  await startServiceWorker()
  // The service worker answers at the page's own address. It needs no token, but the client requires one.
  const address = new URL('v1', document.baseURI).href
  const s2 = new S2({
    accessToken: 'not needed',
    endpoints: { account: address, basin: address },
    // Each time that the browser stops the idle service worker, a follower uses one attempt.
    retry: { maxAttempts: 1_000 },
  })
  await s2.basins.ensure({ basin: 'notebook' })
  await s2.basin('notebook').streams.ensure({ stream: 'notes' })
  const notes = s2.basin('notebook').stream('notes')

  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const body = input.value.trim()
    if (body === '') return
    const appended = notes.append(AppendInput.create([AppendRecord.string({ body })]))
    appended.then(() => {
      input.value = ''
    }, show)
  })
  form.querySelector('button')!.disabled = false
  status.value = 'Ready, with or without a network.'

  // History, then the appends of all tabs. The client resumes when the browser has stopped the service
  // worker.
  const start = { from: { seqNum: 0 } }
  for await (const { seqNum, body } of await notes.readSession({ start, ignoreCommandRecords: true })) {
    const item = document.createElement('li')
    item.value = seqNum
    item.textContent = body
    list.append(item)
  }
}

/** Resolves when the service worker controls this page. */
async function startServiceWorker(): Promise<void> {
  const { serviceWorker } = navigator
  if (serviceWorker === undefined) throw new Error('service workers need https or localhost')
  const script = import.meta.env.DEV ? '/service-worker.ts' : '/service-worker.js'
  await serviceWorker.register(script, { type: 'module' })
  const { active } = await serviceWorker.ready
  if (serviceWorker.controller !== null) return
  const inControl = new Promise((resolve) => {
    serviceWorker.addEventListener('controllerchange', resolve, { once: true })
  })
  active?.postMessage('claim')
  await inControl
}

function show(error: unknown): void {
  status.value = error instanceof Error ? error.message : String(error)
}

start().catch(show)
