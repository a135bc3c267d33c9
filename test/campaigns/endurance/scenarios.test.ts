// @module-tag nightly

import { describe } from 'vitest'
import { defineScenarios } from './campaign.ts'

describe('in memory', () => defineScenarios('memory'))
describe('on the filesystem', () => defineScenarios('filesystem'))
