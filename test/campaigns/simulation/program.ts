import { playSeeds } from '../harness/seeds.ts'
import { SIMULATION } from './simulation.ts'

await playSeeds(SIMULATION)
