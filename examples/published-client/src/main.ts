import { AppendInput, AppendRecord, S2 } from '@s2-dev/streamstore'
import { serviceWorkerInControl } from '../../shared/service-worker-in-control.ts'

const list = document.querySelector('ol')!
const form = document.querySelector('form')!
const input = document.querySelector('input')!
const status = document.querySelector('output')!

async function start(): Promise<void> {
  await serviceWorkerInControl()
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

function show(error: unknown): void {
  status.value = error instanceof Error ? error.message : String(error)
}

start().catch(show)
