import { connect } from 'headwater/client'
import { LEVELS, lineOf } from './line.ts'
import { LogView } from './log-view.ts'
import './style.css'

const element = <Type extends HTMLElement>(id: string) => document.getElementById(id) as Type

const status = element('status')
const latest = element<HTMLButtonElement>('latest')
const list = element('lines')
const chips = element('levels')

for (const level of LEVELS) {
  const label = document.createElement('label')
  const box = Object.assign(document.createElement('input'), { type: 'checkbox', checked: true })
  const count = Object.assign(document.createElement('span'), { textContent: '0' })
  label.dataset.level = level
  label.append(box, level, ' ', count)
  box.addEventListener('change', () => view.toggle(level, box.checked))
  chips.append(label)
}

const view = new LogView(list, (counts, shown) => {
  for (const level of LEVELS)
    chips.querySelector(`[data-level=${level}] span`)!.textContent = `${counts[level]}`
  element('shown').textContent = `${shown} lines`
})

const search = element<HTMLInputElement>('search')
search.addEventListener('input', () => view.search(search.value))
list.addEventListener('scroll', () => {
  latest.hidden = view.isAtEnd
})
latest.addEventListener('click', () => view.scrollToEnd())

// A session that is lost resumes after the last line, for as long as it takes.
const hw = await connect({
  url: location.origin,
  resumes: Number.POSITIVE_INFINITY,
  onRetry: () => show('Connecting', 'waiting'),
})
const session = hw.basin('logs').stream('app').follow({ tailOffset: 2_000 })
try {
  for await (const event of session.events()) {
    if (event.kind === 'batch') view.add(event.batch.records.map(lineOf))
    show('Live', 'live')
  }
} catch (error) {
  show(error instanceof Error ? error.message : String(error), 'failed')
}

function show(text: string, state: string): void {
  status.textContent = text
  status.dataset.state = state
}
