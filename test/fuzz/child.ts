import { asChild } from './harness/as-child.ts'
import { TARGETS } from './targets/index.ts'

await asChild(TARGETS)
