import type { Scenario } from '../harness/scenario.ts'
import { ABANDONED_POLLS } from './abandoned-polls.ts'
import { FOLLOWERS } from './followers.ts'
import { FULL_STORAGE } from './full-storage.ts'
import { IDLE_SESSIONS } from './idle-sessions.ts'
import { SLOW_READERS } from './slow-readers.ts'

export const SCENARIOS: readonly Scenario[] = [
  ...FOLLOWERS,
  ...SLOW_READERS,
  ...ABANDONED_POLLS,
  ...IDLE_SESSIONS,
  FULL_STORAGE,
]
