import theme from 'vitepress/theme'
import { h } from 'vue'
import LandingHero from './LandingHero.vue'
import './colours.css'
import { loadSearchEarly } from './search.ts'
import './text.css'

export default {
  ...theme,
  Layout: () => h(theme.Layout, null, { 'home-hero-before': () => h(LandingHero) }),
  enhanceApp: loadSearchEarly,
}
