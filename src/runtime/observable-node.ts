import type { Observable as RxObservable } from 'rxjs'
import { fromFetch } from 'rxjs/fetch'

/**
 * The same class as that of `rxjs`, from the smallest public module that has it. Node does not drop unused
 * modules, and takes longer to load the 200 modules of `rxjs` than to load everything else and open an
 * engine. `fromFetch` requests nothing until something subscribes.
 */
export const Observable = fromFetch('').constructor as typeof RxObservable
