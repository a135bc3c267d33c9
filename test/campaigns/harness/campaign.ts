type Value = string | number | boolean | undefined

/** The options that `scripts/campaign.mjs` passes in the environment. */
interface CampaignParameters {
  readonly name: string
  readonly options: Readonly<Record<string, Value>>
}

/** A search of which tests run a small share, and `npm run NAME` everything. */
export interface Campaign<Options> {
  readonly name: string
  /** The options of the command line, or else the defaults of the tests. */
  readonly options: Options
  /** Whether `npm run NAME` started it. */
  readonly runsAll: boolean
}

export function campaignOf<Options extends Readonly<Record<string, Value>>>(
  name: string,
  defaults: Options,
): Campaign<Options> {
  const parameters: Partial<CampaignParameters> = JSON.parse(process.env.CAMPAIGN ?? '{}')
  const runsAll = parameters.name === name
  return { name, runsAll, options: runsAll ? { ...defaults, ...parameters.options } : defaults }
}

/** Returns the command that repeats a part of a campaign. Omits options that are `undefined`. */
export function replayCommand(name: string, options: Readonly<Record<string, Value>>): string {
  const passed = Object.entries(options).flatMap(([option, value]) => {
    if (value === undefined || value === false) return []
    return value === true ? [`--${option}`] : [`--${option} ${quoted(String(value))}`]
  })
  return ['npm run', name, '--', ...passed].join(' ')
}

function quoted(value: string): string {
  return /^[\w./-]+$/.test(value) ? value : `'${value}'`
}

/** Returns `count` consecutive seeds. */
export function seedsFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => first + index)
}
