import { expect } from 'vitest'
import { type AppendInput, appendBatch } from '../../../src/model/append-input.ts'
import { outcomeOf } from './outcomes.ts'
import { withCode } from './rejections.ts'

/** The model accepts the decoded append or rejects it as `invalid`. */
export function checkBatch({ inputs, conditions }: AppendInput): void {
  const outcome = outcomeOf(() => appendBatch(inputs, conditions))
  if ('error' in outcome) expect(outcome.error).toSatisfy(withCode('invalid'))
}
