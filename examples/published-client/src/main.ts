import { AppendInput, AppendRecord, S2 } from '@s2-dev/streamstore'
import { serviceWorkerInControl } from '../../shared/service-worker-in-control.ts'

const list = document.querySelector('ol')!
const form = document.querySelector('form')!
const input = document.querySelector('input')!
const status = document.querySelector('output')!

async function start(): Promise<void> {
  await serviceWorkerInControl()
  // The service is this page's own address: the service worker answers. It asks for no token, but the client wants one.
  const address = new URL('v1', document.baseURI).href
  const s2 = new S2({
    accessToken: 'not needed',
    endpoints: { account: address, basin: address },
    // The browser stops an idle service worker over and over, and a follower counts attempts until the next record comes.
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

  // History, then whatever this or another tab appends. The client goes on where it was when the browser stops the service worker.
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
