/**
 * A virtual clock, storages and networks that fail, and a service without a socket, for tests.
 *
 * @packageDocumentation
 */

export {
  type FaultyHandler,
  type FaultyHandlerOptions,
  faultyHandler,
  type Handler,
  type HandlerFault,
  type RequestDelayOptions,
  type RequestPoint,
  type ResponseOptions,
} from './faulty-handler.ts'
export type { InjectedKind, StorageArguments, StorageFault, StorageOperation } from './faulty-session.ts'
export {
  type DelayOptions,
  type FailOptions,
  type FaultyStorage,
  type FaultyStorageOptions,
  faultyStorage,
} from './faulty-storage.ts'
export {
  type FetchClient,
  type InProcessService,
  type InProcessServiceOptions,
  inProcessService,
} from './in-process-service.ts'
export { type FaultPoint, seededRandom } from './planned-faults.ts'
export { type VirtualClock, type VirtualClockOptions, virtualClock } from './virtual-clock.ts'
