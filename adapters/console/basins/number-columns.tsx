import type { ComponentChildren } from 'preact'
import { formatBytes, formatCount, formatDate } from '../format.ts'
import type { Column } from '../ui/list.tsx'
import { Sparkline } from '../ui/sparkline.tsx'
import { useNumbers } from '../ui/use-numbers.ts'
import { type Numbers, shortRetentionText } from './numbers.ts'

export type NumberTitle =
  | 'Records'
  | 'Stored'
  | 'First'
  | 'Next'
  | 'Last write'
  | 'Rate'
  | 'Appended'
  | 'Retention'

type NumberColumn = readonly [
  value: (numbers: Numbers) => number | undefined,
  cell: (value: number, numbers: Numbers) => ComponentChildren,
  isPrimary?: boolean,
]

const withLine = (text: string, { rates }: Numbers) => (
  <>
    <Sparkline values={rates} /> {text}
  </>
)

const COLUMNS: Readonly<Record<NumberTitle, NumberColumn>> = {
  Records: [({ first, next }) => (first === undefined ? first : next! - first), formatCount, true],
  Stored: [({ bytes }) => bytes, formatBytes, true],
  First: [({ first }) => first, formatCount],
  Next: [({ next }) => next, formatCount],
  'Last write': [({ lastWrite }) => lastWrite || undefined, (ms) => formatDate(new Date(ms))],
  Rate: [({ rate }) => rate, (rate, numbers) => withLine(`${rateText(rate)}/s`, numbers)],
  Appended: [({ rate }) => rate, (rate, numbers) => withLine(`${formatBytes(rate)}/s`, numbers)],
  Retention: [
    ({ retention }) => (retention === 'infinite' ? Number.POSITIVE_INFINITY : retention?.ageSeconds),
    (_, { retention }) => shortRetentionText(retention),
  ],
}

function rateText(rate: number): string {
  return formatCount(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate))
}

/** Columns of a list, each sorted by its number. What is not known is empty. */
export function numberColumns<Item>(titles: readonly NumberTitle[]): Column<Item, Numbers>[] {
  return titles.map((title) => {
    const [numberOf, cell, isPrimary = false] = COLUMNS[title]
    return {
      title,
      isNumber: true,
      isSecondary: !isPrimary,
      sortBy: (_, numbers) => numbers && numberOf(numbers),
      cell: (_, numbers) => shown(numberOf, cell, numbers),
    }
  })
}

function shown(
  numberOf: NumberColumn[0],
  cell: NumberColumn[1],
  numbers: Numbers | undefined,
): ComponentChildren {
  const value = numbers && numberOf(numbers)
  return value === undefined ? '' : cell(value, numbers!)
}

/** The numbers of one basin or stream, beside its name. */
export function Facts(props: {
  readonly columns: readonly NumberTitle[]
  readonly load: (before: Numbers | undefined, signal: AbortSignal) => Promise<Numbers>
}) {
  const { columns, load } = props
  const { values } = useNumbers<Numbers>((_, before, signal) => load(before, signal), ONE)
  const numbers = values.get('')
  return (
    <dl class="numbers">
      {columns.map((title) => {
        const [numberOf, cell] = COLUMNS[title]
        const text = shown(numberOf, cell, numbers)
        return (
          text !== '' && (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{text}</dd>
            </div>
          )
        )
      })}
    </dl>
  )
}

const ONE = ['']
