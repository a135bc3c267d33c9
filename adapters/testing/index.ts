export type { FaultPoint } from './faults/planned-faults.ts'
export type { DelayRange } from './faults/random-faults.ts'
export {
  type FaultyHandler,
  type FaultyHandlerOptions,
  faultyHandler,
  type Handler,
} from './network/faulty-handler.ts'
export type {
  HandlerFault,
  HandlerRates,
  RequestDelayOptions,
  RequestPoint,
  ResponseOptions,
} from './network/handler-faults.ts'
export type { FetchClient, FetchClientOptions } from './network/in-process-service.ts'
export {
  type InProcessService,
  type InProcessServiceOptions,
  inProcessService,
} from './network/in-process-service.ts'
export { type FaultyStorage, type FaultyStorageOptions, faultyStorage } from './storage/faulty-storage.ts'
export type {
  CallRates,
  DelayOptions,
  FailOptions,
  InjectedKind,
  NotificationRates,
  ReadRates,
  StorageArguments,
  StorageFault,
  StorageOperation,
  StorageRates,
} from './storage/storage-faults.ts'
export { type VirtualClock, type VirtualClockOptions, virtualClock } from './virtual-clock.ts'
