/**
 * A virtual clock, storages and networks that fail, and a service without a socket, for tests.
 *
 * @packageDocumentation
 */

export { type FaultPoint, seededRandom } from './faults/planned-faults.ts'
export {
  type FaultyHandler,
  type FaultyHandlerOptions,
  faultyHandler,
  type Handler,
  type HandlerFault,
  type RequestDelayOptions,
  type RequestPoint,
  type ResponseOptions,
} from './network/faulty-handler.ts'
export type { FetchClient, FetchClientOptions } from './network/in-process-service.ts'
export {
  type InProcessService,
  type InProcessServiceOptions,
  inProcessService,
} from './network/in-process-service.ts'
export {
  type FaultyStorage,
  type FaultyStorageOptions,
  faultyStorage,
  type NotificationPoint,
} from './storage/faulty-storage.ts'
export type {
  DelayOptions,
  FailOptions,
  InjectedKind,
  StorageArguments,
  StorageFault,
  StorageOperation,
} from './storage/storage-faults.ts'
export { type VirtualClock, type VirtualClockOptions, virtualClock } from './virtual-clock.ts'
