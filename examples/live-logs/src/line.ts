import type { TextRecord } from 'headwater'

export const LEVELS = ['ERROR', 'WARN', 'INFO', 'DEBUG'] as const
export type Level = (typeof LEVELS)[number]

/** A line of the log. */
export interface Line {
  readonly seqNum: number
  readonly time: Date
  readonly level: Level
  readonly text: string
  /** The text in lower case, for searching. */
  readonly searched: string
}

const LEADING_TIME = /^\d{4}-\d\d-\d\d[T ][\d:.,]+(Z|[+-]\d\d:?\d\d)?\s+/
const LEVEL = /\b(ERROR|FATAL|WARN(?:ING)?|INFO|DEBUG|TRACE)\b:?\s*/i

/** Reads the time and the level of a line, if it has them, as most loggers write them. */
export function lineOf({ seqNum, timestamp, body }: TextRecord): Line {
  const [leading = ''] = LEADING_TIME.exec(body) ?? []
  const written = Date.parse(leading.trim().replace(',', '.'))
  const rest = body.slice(leading.length)
  const [found = '', name = 'INFO'] = LEVEL.exec(rest) ?? []
  return {
    seqNum,
    time: new Date(Number.isNaN(written) ? timestamp : written),
    level: levelOf(name.toUpperCase()),
    text: rest.startsWith(found) ? rest.slice(found.length) : rest,
    searched: body.toLowerCase(),
  }
}

function levelOf(name: string): Level {
  if (name === 'FATAL') return 'ERROR'
  if (name === 'WARNING') return 'WARN'
  if (name === 'TRACE') return 'DEBUG'
  return name as Level
}
