import { connect } from 'headwater/client'
import { fold } from 'headwater/fold'
import { EMPTY, type Event, type Job, type Queue, reduce } from '../queue.ts'
import './style.css'

interface Worker {
  readonly name: string
  readonly isRunning: boolean
}

const element = (id: string) => document.getElementById(id)!
const WORDS = 'anchor basin channel delta estuary ford gorge inlet lagoon meander rapids weir'.split(' ')

const hw = await connect({ url: location.origin, resumes: Number.POSITIVE_INFINITY })
const events = hw.basin('work-queue').stream('events').json<Event>()
// The page derives the queue as the workers do, and asks none of them.
const queue = fold(events, { initial: EMPTY, reduce, version: 1 })
const addButton = element('add') as HTMLButtonElement
let workers: readonly Worker[] = []
let isOffline = false

queue.value$.subscribe(render)
addButton.addEventListener('click', () => {
  void events.appendBatch(WORDS.map((text) => ({ type: 'added', id: crypto.randomUUID(), text })))
})
setInterval(loadWorkers, 500)
await loadWorkers()

async function loadWorkers(): Promise<void> {
  const response = await fetch('/api/workers').catch(() => undefined)
  isOffline = !response?.ok
  workers = response?.ok ? await response.json() : []
  render(queue.value)
}

function render(value: Queue): void {
  const done = value.jobs.filter(({ result }) => result !== undefined)
  const again = value.jobs.filter(({ claims }) => claims > 1)
  addButton.disabled = isOffline
  element('summary').textContent = isOffline
    ? 'Offline: the server cannot be reached.'
    : `${done.length} of ${value.jobs.length} jobs done, each once; ${again.length} taken over from a dead worker`
  const list = element('workers')
  // A button keeps its place, so that a click is never lost.
  while (list.children.length < workers.length) list.append(newWorkerItem())
  while (list.children.length > workers.length) list.lastElementChild!.remove()
  for (const [i, worker] of workers.entries())
    renderWorker(list.children[i] as HTMLElement, worker, value.jobs)
  element('jobs').replaceChildren(...value.jobs.slice(-120).map(jobItem))
}

function newWorkerItem(): HTMLElement {
  const item = document.createElement('li')
  const [name, state, button] = ['strong', 'span', 'button'].map((tag) => document.createElement(tag))
  ;(button as HTMLButtonElement).type = 'button'
  button!.addEventListener('click', async () => {
    await fetch(`/api/workers/${item.dataset.name}/${item.dataset.action}`, { method: 'POST' })
    await loadWorkers()
  })
  item.append(name!, state!, button!)
  return item
}

function renderWorker(item: HTMLElement, { name, isRunning }: Worker, jobs: readonly Job[]): void {
  const [title, state, button] = item.children
  const current = jobs.find(({ worker, result }) => worker === name && result === undefined)
  const finished = jobs.filter(({ worker, result }) => worker === name && result !== undefined).length
  item.dataset.name = name
  item.dataset.action = isRunning ? 'kill' : 'start'
  title!.textContent = name
  const work = current === undefined ? 'waits for a job' : `works on “${current.text}”`
  state!.textContent = `${finished} done, ${isRunning ? work : 'killed'}`
  button!.textContent = isRunning ? `Kill ${name}` : `Start ${name}`
}

function jobItem({ text, worker, result, claims }: Job): HTMLElement {
  const item = document.createElement('li')
  item.dataset.state = result !== undefined ? 'done' : worker === undefined ? 'waiting' : 'claimed'
  if (claims > 1) item.dataset.again = ''
  item.textContent = result ?? text
  item.title = worker === undefined ? 'waits' : `${result === undefined ? 'claimed' : 'done'} by ${worker}`
  if (worker !== undefined) item.dataset.worker = worker
  return item
}
