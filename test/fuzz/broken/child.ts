import { asChild } from '../harness/as-child.ts'
import { BROKEN } from './targets.ts'

await asChild(BROKEN)
