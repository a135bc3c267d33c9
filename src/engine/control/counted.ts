import type { Operation } from '../../model/operations.ts'
import type { StreamRef } from '../context.ts'
import type { CallerServices } from '../services.ts'
import type { UsageRecorder } from '../usage/usage-recorder.ts'

/** Which operation each call is in the usage metrics; of making sure of something it depends on whether it was created. */
const OPERATION_OF = {
  basins: {
    create: 'create-basin',
    ensure: ['create-basin', 'reconfigure-basin'],
    list: 'list-basins',
    config: 'get-basin-config',
    reconfigure: 'reconfigure-basin',
    delete: 'delete-basin',
  },
  streams: {
    create: 'create-stream',
    ensure: ['create-stream', 'reconfigure-stream'],
    list: 'list-streams',
    config: 'get-stream-config',
    reconfigure: 'reconfigure-stream',
    delete: 'delete-stream',
  },
  tokens: { issue: 'issue-access-token', list: 'list-access-tokens', revoke: 'revoke-access-token' },
  metrics: { account: 'account-metrics', basin: 'basin-metrics', stream: 'stream-metrics' },
  locations: {
    list: 'list-locations',
    default: 'get-default-location',
    setDefault: 'set-default-location',
  },
} as const satisfies {
  readonly [Name in Exclude<keyof CallerServices, 'records'>]: {
    readonly [Method in keyof CallerServices[Name]]: CountedAs
  }
}

type CountedAs = Operation | readonly [created: Operation, existed: Operation]
type Call = (...input: readonly unknown[]) => Promise<unknown>

/** The same service, with each call counted once it has succeeded. What is done with records is counted where it is done. */
export function counted<Name extends keyof typeof OPERATION_OF>(
  name: Name,
  service: CallerServices[Name],
  usage: UsageRecorder,
): CallerServices[Name] {
  const calls = service as unknown as Record<string, Call>
  const countedCalls = Object.entries<CountedAs>(OPERATION_OF[name]).map(([method, countedAs]) => {
    const call: Call = async (...input) => {
      const result = await calls[method]!(...input)
      const operation = typeof countedAs === 'string' ? countedAs : countedAs[isCreated(result) ? 0 : 1]
      usage.operation(operation, basinOf(name, method, input[0]))
      return result
    }
    return [method, call] as const
  })
  return Object.fromEntries(countedCalls) as unknown as CallerServices[Name]
}

/** The basin of a basin's or a stream's operation; others are the account's. */
function basinOf(service: keyof CallerServices, method: string, input: unknown): string | undefined {
  if (service !== 'streams' && (service !== 'metrics' || method === 'account')) return undefined
  return typeof input === 'string' ? input : (input as StreamRef).basin
}

function isCreated(result: unknown): boolean {
  return (result as { result?: string }).result === 'created'
}
