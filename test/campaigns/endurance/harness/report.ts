/** The report of a child about its scenario. */
export interface Report {
  /** Kinds whose number changed over the rounds, as `before → after`. */
  readonly leftovers: Readonly<Record<string, string>>
  /** The same, between the start and the end of the process, when everything is closed. */
  readonly leftAtEnd: Readonly<Record<string, string>>
  /** The growth of the memory in use, without what the storage keeps. */
  readonly grownBytes: number
  readonly grownBytesMax: number
  /** The largest growth at any sample. */
  readonly peakBytes: number
  readonly budgetBytes: number
  /** Warnings of Node, for example about too many listeners. */
  readonly warnings: readonly string[]
  /** Errors reported to the owner of the engine, the handler and the server. */
  readonly errors: readonly string[]
}

/** Describes the problems in a report. */
export function problemsOf(report: Report): string[] {
  const { grownBytes, grownBytesMax, peakBytes, budgetBytes } = report
  const leftovers = (things: Readonly<Record<string, string>>, when: string) =>
    Object.entries(things).map(([kind, counts]) => `${kind} ${when}: ${counts}`)
  return [
    ...leftovers(report.leftovers, 'after the rounds'),
    ...leftovers(report.leftAtEnd, 'when all is closed'),
    ...(grownBytes > grownBytesMax ? [`${grownBytes} bytes more in use, of at most ${grownBytesMax}`] : []),
    ...(peakBytes > budgetBytes ? [`${peakBytes} bytes in use at once, of at most ${budgetBytes}`] : []),
    ...report.warnings.map((warning) => `a warning: ${warning}`),
    ...report.errors.map((error) => `an error: ${error}`),
  ]
}
