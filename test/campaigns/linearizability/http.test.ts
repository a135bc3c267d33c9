import { afterAll, expect } from 'vitest'
import { campaign, HAS_ALL_OUTCOMES, workloadOf } from './campaign.ts'
import { ANSWER_FAULTS, type ConnectionFault, REQUEST_FAULTS } from './connection-faults.ts'
import { openHttp } from './http-target.ts'
import { recordTarget } from './record-history.ts'

const OUTCOMES = ['appended', 'refused', 'not-made', 'unknown', 'read', 'tail', 'failed'] as const

const faults = new Set<ConnectionFault>()

campaign('HTTP whose connections are cut', OUTCOMES, async (seed) => {
  const target = await openHttp(seed)
  const history = await recordTarget(target, workloadOf(seed))
  for (const fault of target.faults.keys()) faults.add(fault)
  expect(target.errors).toEqual([])
  return history
})

afterAll(() => {
  if (HAS_ALL_OUTCOMES) expect(faults).toEqual(new Set([...REQUEST_FAULTS, ...ANSWER_FAULTS]))
})
