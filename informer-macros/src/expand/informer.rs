//! Generates the constructors of informers: an `impl` of the trait `Derived`, which factories use,
//! and `new_informer` and `new_informer_from` for informers without a factory.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::Model;

pub(super) fn informer(model: &Model) -> TokenStream {
    let Model { object, factory_path, .. } = model;
    let without_factory = without_factory(model);
    let prune = &model.prune;
    let resync = match model.default_resync {
        Some(period) => {
            let (seconds, nanos) = (period.as_secs(), period.subsec_nanos());
            quote!(::core::option::Option::Some(::core::time::Duration::new(#seconds, #nanos)))
        }
        None => quote!(::core::option::Option::None),
    };
    let handles = model.indexes.iter().map(|index| &index.handle);
    let indexes = quote::format_ident!("{object}Indices");
    let informer = if model.indexes.is_empty() { quote!(_) } else { quote!(informer) };
    quote! {
        #without_factory

        impl #factory_path::__private::Derived for #object {
            const PRUNED: &'static [&'static str] = &[#(#prune),*];
            const DEFAULT_RESYNC: ::core::option::Option<::core::time::Duration> = #resync;

            fn add_indices(#informer: &#factory_path::SharedIndexInformer<Self>) {
                #(#indexes::#handles(informer);)*
            }
        }
    }
}

fn without_factory(model: &Model) -> TokenStream {
    let Model { object, factory_path, vis, .. } = model;
    let doc = format!(
        " Returns an informer for [`{object}`]s with the derive's indexes, and the task that runs the informer."
    );
    let doc_from = format!(
        " Returns an informer for [`{object}`]s from any source, with the derive's indexes, and the task that runs the informer."
    );
    quote! {
        #[allow(dead_code)]
        impl #object {
            #[doc = #doc]
            ///
            /// If the derive has pruned paths, they replace those of `list_watch`.
            /// The derive's resync period applies if `options` sets none.
            #[must_use]
            #vis fn new_informer(
                list_watch: #factory_path::informer_reflector::KubeListWatch<Self>,
                options: #factory_path::InformerOptions<Self>,
            ) -> (#factory_path::SharedIndexInformer<Self>, #factory_path::InformerTask) {
                #factory_path::__private::new_informer(list_watch, options)
            }

            #[doc = #doc_from]
            ///
            /// The derive's resync period applies if `options` sets none.
            /// The derive's pruned paths are not used.
            #[must_use]
            #vis fn new_informer_from(
                lister_watcher: ::std::sync::Arc<dyn #factory_path::informer_core::ListerWatcher<Self>>,
                options: #factory_path::InformerOptions<Self>,
            ) -> (#factory_path::SharedIndexInformer<Self>, #factory_path::InformerTask) {
                #factory_path::__private::new_informer_from(lister_watcher, options)
            }
        }
    }
}
